// OpenCL's devices: what the tables of device/plugin.h call.
#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>

#include "device/plugin.h"
#include "discovery.h"
#include "memory.h"
#include "opencl.h"
#include "stream.h"

namespace opencl {
namespace {

bool offers(cl_device_id device, const char* extension) {
  const std::string all = ' ' + device_text(device, CL_DEVICE_EXTENSIONS) + ' ';
  return all.find(std::string(" ") + extension + ' ') != std::string::npos;
}

// "" without the extension that tells.
std::string bus_id(cl_device_id device) {
#ifdef CL_DEVICE_PCI_BUS_INFO_KHR
  cl_device_pci_bus_info_khr at{};
  if (!offers(device, "cl_khr_pci_bus_info") ||
      clGetDeviceInfo(device, CL_DEVICE_PCI_BUS_INFO_KHR, sizeof(at), &at, nullptr) != CL_SUCCESS) {
    return "";
  }
  char text[32];
  std::snprintf(text, sizeof(text), "%04x:%02x:%02x.%x", at.pci_domain, at.pci_bus, at.pci_device,
                at.pci_function);
  return text;
#else
  return "";
#endif
}

cl_ulong memory_of(cl_device_id device) {
  return device_number<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE, 0);
}

// Memory that host and device may use at the same time.
cl_ulong unified_memory_of(cl_device_id device) {
  const auto kinds =
      device_number<cl_device_svm_capabilities>(device, CL_DEVICE_SVM_CAPABILITIES, 0);
  return (kinds & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0 ? memory_of(device) : 0;
}

int64_t as_signed(uint64_t bytes) {
  return static_cast<int64_t>(
      std::min(bytes, static_cast<uint64_t>(std::numeric_limits<int64_t>::max())));
}

class Device {
  const std::shared_ptr<const Context> context_ = shared_context();
  const cl_device_id id_;

 public:
  explicit Device(int32_t ordinal)
      : id_(found_devices().devices[static_cast<size_t>(ordinal)]),
        hardware_name(device_text(id_, CL_DEVICE_NAME)),
        vendor(device_text(id_, CL_DEVICE_VENDOR)),
        pci_bus_id(bus_id(id_)),
        memory_(context_, CL_MEM_READ_WRITE, memory_of(id_)),
        unified_(context_, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, unified_memory_of(id_)),
        pinned_(context_, id_),
        copies_(make_queue(*context_, id_)) {}

  const std::string hardware_name, vendor;
  const std::string pci_bus_id;  // "" where the driver does not tell

  void* allocate(uint64_t bytes) { return memory_.allocate(bytes); }
  void deallocate(void* memory) { memory_.deallocate(memory); }
  void* allocate_host(uint64_t bytes) { return pinned_.allocate(bytes); }
  void deallocate_host(void* memory) { pinned_.deallocate(memory); }
  void* allocate_unified(uint64_t bytes) { return unified_.allocate(bytes); }
  void deallocate_unified(void* memory) { unified_.deallocate(memory); }
  device::MemoryCounts counts() const { return memory_.counts(); }
  int64_t bytes_limit() const { return as_signed(memory_.limit()); }
  // OpenCL tells how much memory a device has, not how much of it others use.
  bool memory_usage(int64_t& free, int64_t& total) const {
    total = bytes_limit();
    free = total - counts().bytes_in_use;
    return true;
  }

  // Returns when it is done. Either end may be host memory.
  void copy(void* target, const void* source, uint64_t size) {
    check(clEnqueueSVMMemcpy(copies_.get(), CL_TRUE, target, source, size, 0, nullptr, nullptr),
          "clEnqueueSVMMemcpy");
  }
  std::unique_ptr<Stream> new_stream() { return std::make_unique<Stream>(context_, id_); }

  // OpenCL tells none: clock and compute units say nothing of the work done per cycle, and a measurement
  // would need a compiler. Negative means "not known".
  int32_t numa_node() const { return -1; }
  int64_t memory_bandwidth() const { return -1; }
  double gflops() const { return -1.0; }

 private:
  SharedMemory memory_;
  SharedMemory unified_;  // gives nothing where the host may not touch what the device works on
  PinnedMemory pinned_;
  const Queue copies_;
};

// Drivers that cannot be asked have no memory to share; device_count tells why.
bool host_shares_memory() {
  try {
    return found_devices().shares_with_host;
  } catch (const std::exception&) {
    return false;
  }
}

struct Backend {
  using Device = opencl::Device;
  using Stream = opencl::Stream;
  using Mark = opencl::Mark;

  static void describe(SP_Platform& platform) {
    platform.name = MTF_OPENCL_PLATFORM_NAME;
    platform.type = MTF_OPENCL_DEVICE_TYPE;
    platform.supports_unified_memory = host_shares_memory() ? 1 : 0;
    platform.use_bfc_allocator = 1;    // a driver's allocation is slow
    platform.force_memory_growth = 1;  // and on a host's processor it is the host's memory
  }
  static int device_count() { return static_cast<int>(found_devices().devices.size()); }
};

}  // namespace
}  // namespace opencl

extern "C" TF_CAPI_EXPORT void SE_InitPlugin(SE_PlatformRegistrationParams* params,
                                             TF_Status* status) {
  device::init_plugin<opencl::Backend>(params, status);
}
