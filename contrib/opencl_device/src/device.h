// One device: names for people, memory, and the streams that are open on it.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "memory.h"
#include "modular_tf/device.h"
#include "pinned_memory.h"
#include "stream.h"

namespace opencl {

// [any thread]
class Device {
 public:
  Device(std::shared_ptr<const Context> context, cl_device_id id);  // throws Failed

  const std::string hardware_name;
  const std::string vendor;
  const std::string pci_bus_id;  // "" where the driver does not tell
  SharedMemory memory;
  SharedMemory unified;  // gives nothing where the host may not touch what the device works on
  PinnedMemory pinned;

  std::unique_ptr<SP_Stream_st> add_stream();
  void forget(SP_Stream_st& stream);

  // Copies, and returns when it is done. Either end may be host memory. Throws Failed.
  void copy(void* target, const void* source, size_t bytes);

  // Waits for what all streams hold now; what became of it, the streams tell.
  void synchronize();

 private:
  const std::shared_ptr<const Context> context_;
  const cl_device_id id_;
  const Queue copies_;
  std::mutex mutex_;
  std::set<SP_Stream_st*> streams_;
};

inline Device& device_of(const SP_Device* device) {
  return *static_cast<Device*>(device->device_handle);
}

}  // namespace opencl
