// A backend of device/plugin.h that has no memory, and says so by exceptions.
#include "device/plugin.h"

namespace {

struct Backend {
  struct Stream {};
  struct Mark {};
  struct Device {
    explicit Device(int32_t) {}
    void* allocate(uint64_t) { throw std::bad_alloc(); }
    void* allocate_host(uint64_t) { throw device::Failed(TF_INTERNAL, "no driver"); }
    void* allocate_unified(uint64_t) { throw std::length_error("too long"); }
  };
};

using Slots = device::Slots<Backend>;

}  // namespace

// The number of slots that return memory, or throw.
extern "C" __attribute__((visibility("default"))) int slots_with_memory() {
  Slots::OpenDevice open(0);
  SP_Device device = {};
  device.device_handle = &open;
  int found = 0;
  try {
    SP_DeviceMemoryBase memory = {};
    Slots::allocate(&device, 8, 0, &memory);
    found += memory.opaque != nullptr || memory.size != 0;
    found += Slots::host_memory_allocate(&device, 8) != nullptr;
    found += Slots::unified_memory_allocate(&device, 8) != nullptr;
  } catch (const std::exception&) {
    ++found;
  }
  return found;
}
