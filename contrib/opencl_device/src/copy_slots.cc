// Copies and fills. Host and device memory go by addresses alike, so every direction is the same
// command. One of 0 bytes is none: OpenCL refuses it.
#include "device.h"
#include "reported.h"
#include "slots.h"

namespace opencl {
namespace {

void copy_on(SP_Stream stream, void* target, const void* source, uint64_t size,
             TF_Status* status) {
  reported(status, [&] {
    if (size == 0) return;
    stream->stream.enqueue("clEnqueueSVMMemcpy", [=](cl_command_queue queue, cl_event* event) {
      return clEnqueueSVMMemcpy(queue, CL_FALSE, target, source, size, 0, nullptr, event);
    });
  });
}

void copy_now(const SP_Device* device, void* target, const void* source, uint64_t size,
              TF_Status* status) {
  reported(status, [&] { device_of(device).copy(target, source, size); });
}

void memcpy_dtoh(const SP_Device*, SP_Stream stream, void* host_dst,
                 const SP_DeviceMemoryBase* device_src, uint64_t size, TF_Status* status) {
  copy_on(stream, host_dst, device_src->opaque, size, status);
}

void memcpy_htod(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* device_dst,
                 const void* host_src, uint64_t size, TF_Status* status) {
  copy_on(stream, device_dst->opaque, host_src, size, status);
}

void memcpy_dtod(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* device_dst,
                 const SP_DeviceMemoryBase* device_src, uint64_t size, TF_Status* status) {
  copy_on(stream, device_dst->opaque, device_src->opaque, size, status);
}

void sync_memcpy_dtoh(const SP_Device* device, void* host_dst,
                      const SP_DeviceMemoryBase* device_src, uint64_t size, TF_Status* status) {
  copy_now(device, host_dst, device_src->opaque, size, status);
}

void sync_memcpy_htod(const SP_Device* device, SP_DeviceMemoryBase* device_dst,
                      const void* host_src, uint64_t size, TF_Status* status) {
  copy_now(device, device_dst->opaque, host_src, size, status);
}

void sync_memcpy_dtod(const SP_Device* device, SP_DeviceMemoryBase* device_dst,
                      const SP_DeviceMemoryBase* device_src, uint64_t size, TF_Status* status) {
  copy_now(device, device_dst->opaque, device_src->opaque, size, status);
}

// The address and the size must be multiples of the pattern's size: OpenCL checks.
template <class Pattern>
void fill(SP_Stream stream, void* target, Pattern pattern, uint64_t size, TF_Status* status) {
  reported(status, [&] {
    if (size == 0) return;
    stream->stream.enqueue("clEnqueueSVMMemFill", [&](cl_command_queue queue, cl_event* event) {
      return clEnqueueSVMMemFill(queue, target, &pattern, sizeof(pattern), size, 0, nullptr,
                                 event);
    });
  });
}

void fill_bytes(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* location,
                uint8_t pattern, uint64_t size, TF_Status* status) {
  fill(stream, location->opaque, pattern, size, status);
}

void zero_bytes(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* location, uint64_t size,
                TF_Status* status) {
  fill(stream, location->opaque, uint8_t{0}, size, status);
}

void fill_words(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* location,
                uint32_t pattern, uint64_t size, TF_Status* status) {
  fill(stream, location->opaque, pattern, size, status);
}

}  // namespace

void fill_copy_slots(SP_StreamExecutor& executor) {
  executor.memcpy_dtoh = memcpy_dtoh;
  executor.memcpy_htod = memcpy_htod;
  executor.memcpy_dtod = memcpy_dtod;
  executor.sync_memcpy_dtoh = sync_memcpy_dtoh;
  executor.sync_memcpy_htod = sync_memcpy_htod;
  executor.sync_memcpy_dtod = sync_memcpy_dtod;
  executor.mem_zero = zero_bytes;
  executor.memset = fill_bytes;
  executor.memset32 = fill_words;
}

}  // namespace opencl
