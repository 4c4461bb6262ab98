// The host as a device: what the tables of device/plugin.h call.
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "device/plugin.h"
#include "machine.h"
#include "memory.h"
#include "stream.h"

namespace host {
namespace {

constexpr int kMostDevices = 1024;  // all are the same machine: more is surely a slip

class Device {
 public:
  explicit Device(int32_t) {}

  const std::string hardware_name = host::hardware_name();
  const std::string vendor = vendor_name();
  const std::string pci_bus_id;  // the host sits on no bus

  void* allocate(uint64_t bytes) { return memory_.allocate(bytes); }
  void deallocate(void* memory) { memory_.deallocate(memory); }
  // Host memory and unified memory are the same heap; they do not count as the device's.
  void* allocate_host(uint64_t bytes) { return allocate_aligned(bytes); }
  void deallocate_host(void* memory) { free_aligned(memory); }
  void* allocate_unified(uint64_t bytes) { return allocate_aligned(bytes); }
  void deallocate_unified(void* memory) { free_aligned(memory); }
  device::MemoryCounts counts() const { return memory_.counts(); }
  int64_t bytes_limit() const { return -1; }  // none of ours
  bool memory_usage(int64_t& free, int64_t& total) const { return host::memory_usage(free, total); }

  void copy(void* target, const void* source, uint64_t size) { std::memmove(target, source, size); }
  std::unique_ptr<Stream> new_stream() { return std::make_unique<Stream>(); }

  int32_t numa_node() const { return host::numa_node(); }
  int64_t memory_bandwidth() const { return host::memory_bandwidth(); }
  double gflops() const { return host::gflops(); }

 private:
  Memory memory_;
};

struct Backend {
  using Device = host::Device;
  using Stream = host::Stream;
  using Mark = host::Mark;

  static void describe(SP_Platform& platform) {
    platform.name = MTF_HOST_DEVICE_PLATFORM;
    platform.type = MTF_HOST_DEVICE_TYPE;
    platform.supports_unified_memory = 1;  // there is no other memory
    platform.use_bfc_allocator = 0;        // the heap is quick enough
    platform.force_memory_growth = 1;      // a host that pools all the same must not take it all
  }

  // What the environment asks for, or 1.
  static int device_count() {
    const char* text = std::getenv("MTF_HOST_DEVICE_COUNT");
    if (text == nullptr || *text == '\0') return 1;
    int count = 0;
    const std::string_view digits(text);
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    const bool is_whole = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
    if (is_whole && count >= 0 && count <= kMostDevices) return count;
    throw device::Failed(TF_INVALID_ARGUMENT, "MTF_HOST_DEVICE_COUNT must be a number from 0 to 1024");
  }
};

}  // namespace
}  // namespace host

extern "C" TF_CAPI_EXPORT void SE_InitPlugin(SE_PlatformRegistrationParams* params,
                                             TF_Status* status) {
  device::init_plugin<host::Backend>(params, status);
}
