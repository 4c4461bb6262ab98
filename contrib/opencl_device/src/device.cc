#include "device.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "discovery.h"
#include "queue.h"

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

}  // namespace

Device::Device(std::shared_ptr<const Context> context, cl_device_id id)
    : hardware_name(device_text(id, CL_DEVICE_NAME)),
      vendor(device_text(id, CL_DEVICE_VENDOR)),
      pci_bus_id(bus_id(id)),
      memory(context, CL_MEM_READ_WRITE, memory_of(id)),
      unified(context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, unified_memory_of(id)),
      pinned(context, id),
      context_(std::move(context)),
      id_(id),
      copies_(make_queue(*context_, id)) {}

std::unique_ptr<SP_Stream_st> Device::add_stream() {
  auto stream = std::make_unique<SP_Stream_st>(context_, id_);
  const std::lock_guard lock(mutex_);
  streams_.insert(stream.get());
  return stream;
}

void Device::forget(SP_Stream_st& stream) {
  const std::lock_guard lock(mutex_);
  streams_.erase(&stream);
}

void Device::copy(void* target, const void* source, size_t bytes) {
  if (bytes == 0) return;
  check(clEnqueueSVMMemcpy(copies_.get(), CL_TRUE, target, source, bytes, 0, nullptr, nullptr),
        "clEnqueueSVMMemcpy");
}

void Device::synchronize() {
  std::vector<Mark> marks;
  {
    const std::lock_guard lock(mutex_);
    for (SP_Stream_st* stream : streams_) marks.push_back(stream->stream.mark());
  }
  for (const Mark& mark : marks) mark.wait();
}

}  // namespace opencl
