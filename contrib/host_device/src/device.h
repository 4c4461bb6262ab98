// One device: names for people, memory, and the streams that are open on it.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "memory.h"
#include "modular_tf/device.h"
#include "stream.h"

namespace host {

// [any thread]
class Device {
 public:
  Device();

  const std::string hardware_name;
  const std::string vendor;
  Memory memory;

  void add(Stream& stream);
  void remove(Stream& stream);

  // Waits for what all streams hold now.
  void synchronize();

 private:
  std::mutex mutex_;
  std::set<Stream*> streams_;
};

inline Device& device_of(const SP_Device* device) {
  return *static_cast<Device*>(device->device_handle);
}

}  // namespace host
