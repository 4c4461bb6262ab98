// Copies and fills. Device memory is plain memory here, so every direction is the same move; on a
// stream it happens on the stream's thread, or at once where that is idle and there is little to
// do; the sync_ ones happen on the caller's.
#include <cstring>

#include "reported.h"
#include "slots.h"
#include "stream.h"

namespace host {
namespace {

// A copy of so many bytes takes less than waking a thread.
constexpr uint64_t kShortBytes = uint64_t{64} << 10;

// `size`: of what the task writes.
template <class Task>
void write_on(SP_Stream stream, uint64_t size, TF_Status* status, Task task) {
  reported(status, [&] {
    if (size > kShortBytes) return stream->stream.enqueue(task);
    stream->stream.enqueue_short(task);
  });
}

// Copies within one allocation may overlap. What is nothing may be at NULL, which neither memmove
// nor memset must be given.
void move(void* target, const void* source, uint64_t size) {
  if (size != 0) std::memmove(target, source, size);
}

void fill(void* target, uint8_t pattern, uint64_t size) {
  if (size != 0) std::memset(target, pattern, size);
}

void move_on(SP_Stream stream, void* target, const void* source, uint64_t size,
             TF_Status* status) {
  write_on(stream, size, status, [=] { move(target, source, size); });
}

void move_now(void* target, const void* source, uint64_t size, TF_Status* status) {
  move(target, source, size);
  TF_SetStatus(status, TF_OK, "");
}

void memcpy_dtoh(const SP_Device*, SP_Stream stream, void* host_dst,
                 const SP_DeviceMemoryBase* device_src, uint64_t size, TF_Status* status) {
  move_on(stream, host_dst, device_src->opaque, size, status);
}

void memcpy_htod(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* device_dst,
                 const void* host_src, uint64_t size, TF_Status* status) {
  move_on(stream, device_dst->opaque, host_src, size, status);
}

void memcpy_dtod(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* device_dst,
                 const SP_DeviceMemoryBase* device_src, uint64_t size, TF_Status* status) {
  move_on(stream, device_dst->opaque, device_src->opaque, size, status);
}

void sync_memcpy_dtoh(const SP_Device*, void* host_dst, const SP_DeviceMemoryBase* device_src,
                      uint64_t size, TF_Status* status) {
  move_now(host_dst, device_src->opaque, size, status);
}

void sync_memcpy_htod(const SP_Device*, SP_DeviceMemoryBase* device_dst, const void* host_src,
                      uint64_t size, TF_Status* status) {
  move_now(device_dst->opaque, host_src, size, status);
}

void sync_memcpy_dtod(const SP_Device*, SP_DeviceMemoryBase* device_dst,
                      const SP_DeviceMemoryBase* device_src, uint64_t size, TF_Status* status) {
  move_now(device_dst->opaque, device_src->opaque, size, status);
}

void fill_bytes(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* location,
                uint8_t pattern, uint64_t size, TF_Status* status) {
  void* target = location->opaque;
  write_on(stream, size, status, [=] { fill(target, pattern, size); });
}

void zero_bytes(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* location,
                uint64_t size, TF_Status* status) {
  fill_bytes(device, stream, location, 0, size, status);
}

// The address need not be a multiple of four.
void write_words(char* target, uint32_t pattern, uint64_t size) {
  for (uint64_t at = 0; at < size; at += sizeof(pattern)) {
    std::memcpy(target + at, &pattern, sizeof(pattern));
  }
}

void fill_words(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* location,
                uint32_t pattern, uint64_t size, TF_Status* status) {
  if (size % sizeof(pattern) != 0) {
    return TF_SetStatus(status, TF_INVALID_ARGUMENT, "memset32: size is no multiple of 4");
  }
  auto* target = static_cast<char*>(location->opaque);
  write_on(stream, size, status, [=] { write_words(target, pattern, size); });
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

}  // namespace host
