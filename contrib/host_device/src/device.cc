#include "device.h"

#include <vector>

#include "machine.h"

namespace host {

Device::Device() : hardware_name(host::hardware_name()), vendor(vendor_name()) {}

void Device::add(Stream& stream) {
  const std::lock_guard lock(mutex_);
  streams_.insert(&stream);
}

void Device::remove(Stream& stream) {
  const std::lock_guard lock(mutex_);
  streams_.erase(&stream);
}

void Device::synchronize() {
  std::vector<MarkPointer> marks;
  {
    const std::lock_guard lock(mutex_);
    for (Stream* stream : streams_) marks.push_back(stream->mark());
  }
  for (const MarkPointer& mark : marks) mark->wait();
}

}  // namespace host
