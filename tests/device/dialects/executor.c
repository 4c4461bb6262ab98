/* SP_StreamExecutor: work on the host's memory, done when the call returns. Streams and events have
 * NULL for a handle, which is legal, and no status is touched. */
#define _POSIX_C_SOURCE 200809L /* for clock_gettime */
#include "variant.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

Status* TF_NewStatus(void); /* the host's, as the next */
void TF_DeleteStatus(Status* status);

#ifdef WITHOUT
#define NOTE(name) called(name)
#else
#define NOTE(name) (void)0
#endif

void* aligned_memory(uint64_t size, size_t alignment) {
  const uint64_t least = size > 0 ? size : 1;
  const uint64_t whole = (least + alignment - 1) / alignment * alignment;
  return whole >= least ? aligned_alloc(alignment, whole) : NULL;
}

VISIBLE void slot_allocate(const Device* device, uint64_t size, int64_t space, Memory* memory) {
  (void)device, (void)space;
  memory->opaque = aligned_memory(size, 256);
  memory->size = memory->opaque != NULL ? size : 0;
}
VISIBLE void slot_deallocate(const Device* device, Memory* memory) {
  (void)device;
  free(memory->opaque);
  memory->opaque = NULL;
}
VISIBLE void* slot_host_memory_allocate(const Device* device, uint64_t size) {
  (void)device;
  return aligned_memory(size, 256);
}
VISIBLE void slot_host_memory_deallocate(const Device* device, void* memory) {
  (void)device;
  free(memory);
}
VISIBLE void* slot_unified_memory_allocate(const Device* device, uint64_t size) {
  return slot_host_memory_allocate(device, size);
}
VISIBLE void slot_unified_memory_deallocate(const Device* device, void* memory) {
  slot_host_memory_deallocate(device, memory);
}
VISIBLE unsigned char slot_get_allocator_stats(const Device* device, void* stats) {
  (void)device, (void)stats;
  return 0;
}
VISIBLE unsigned char slot_device_memory_usage(const Device* device, int64_t* unused,
                                               int64_t* total) {
  (void)device;
  *unused = *total = (int64_t)1 << 30;
  return 1;
}
VISIBLE void slot_create_stream(const Device* device, Stream** stream, Status* status) {
  (void)device, (void)status;
  *stream = NULL; /* a legal handle */
}
VISIBLE void slot_destroy_stream(const Device* device, Stream* stream) {
  (void)device, (void)stream;
  NOTE("destroy_stream");
}
VISIBLE void slot_create_stream_dependency(const Device* device, Stream* dependent, Stream* other,
                                           Status* status) {
  (void)device, (void)dependent, (void)other, (void)status;
}
VISIBLE void slot_get_stream_status(const Device* device, Stream* stream, Status* status) {
  (void)device, (void)stream, (void)status;
}
VISIBLE void slot_create_event(const Device* device, Event** event, Status* status) {
  (void)device, (void)status;
  *event = NULL;
}
VISIBLE void slot_destroy_event(const Device* device, Event* event) { (void)device, (void)event; }
VISIBLE int slot_get_event_status(const Device* device, Event* event) {
  (void)device, (void)event;
  return 3; /* complete */
}
VISIBLE void slot_record_event(const Device* device, Stream* stream, Event* event,
                               Status* status) {
  (void)device, (void)stream, (void)event, (void)status;
}
VISIBLE void slot_wait_for_event(const Device* device, Stream* stream, Event* event,
                                 Status* status) {
  (void)device, (void)stream, (void)event, (void)status;
}

struct Timer {
  struct timespec start, stop;
};

static uint64_t nanoseconds_of(struct timespec time) {
  return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}
uint64_t timer_nanoseconds(Timer* timer) {
  return nanoseconds_of(timer->stop) - nanoseconds_of(timer->start);
}
VISIBLE void slot_create_timer(const Device* device, Timer** timer, Status* status) {
  (void)device, (void)status;
  *timer = calloc(1, sizeof(**timer));
}
VISIBLE void slot_destroy_timer(const Device* device, Timer* timer) {
  (void)device;
  free(timer);
}
VISIBLE void slot_start_timer(const Device* device, Stream* stream, Timer* timer, Status* status) {
  (void)device, (void)stream, (void)status;
  clock_gettime(CLOCK_MONOTONIC, &timer->start);
}
VISIBLE void slot_stop_timer(const Device* device, Stream* stream, Timer* timer, Status* status) {
  (void)device, (void)stream, (void)status;
  clock_gettime(CLOCK_MONOTONIC, &timer->stop);
}
VISIBLE void slot_sync_memcpy_dtoh(const Device* device, void* to, const Memory* from,
                                   uint64_t size, Status* status) {
  (void)device, (void)status;
  memcpy(to, from->opaque, size);
}
VISIBLE void slot_sync_memcpy_htod(const Device* device, Memory* to, const void* from,
                                   uint64_t size, Status* status) {
  (void)device, (void)status;
  memcpy(to->opaque, from, size);
}
VISIBLE void slot_sync_memcpy_dtod(const Device* device, Memory* to, const Memory* from,
                                   uint64_t size, Status* status) {
  (void)device, (void)status;
  memmove(to->opaque, from->opaque, size);
}
VISIBLE void slot_memcpy_dtoh(const Device* device, Stream* stream, void* to, const Memory* from,
                              uint64_t size, Status* status) {
  (void)stream;
  slot_sync_memcpy_dtoh(device, to, from, size, status);
}
VISIBLE void slot_memcpy_htod(const Device* device, Stream* stream, Memory* to, const void* from,
                              uint64_t size, Status* status) {
  (void)stream;
  slot_sync_memcpy_htod(device, to, from, size, status);
}
VISIBLE void slot_memcpy_dtod(const Device* device, Stream* stream, Memory* to, const Memory* from,
                              uint64_t size, Status* status) {
  (void)stream;
  slot_sync_memcpy_dtod(device, to, from, size, status);
}
VISIBLE void slot_block_host_for_event(const Device* device, Event* event, Status* status) {
  (void)device, (void)event, (void)status;
}
VISIBLE void slot_block_host_until_done(const Device* device, Stream* stream, Status* status) {
  (void)device, (void)stream, (void)status;
  NOTE("block_host_until_done");
}
VISIBLE void slot_synchronize_all_activity(const Device* device, Status* status) {
  (void)device, (void)status;
}
#if HAS_FILLS
VISIBLE void slot_memset(const Device* device, Stream* stream, Memory* memory, uint8_t byte,
                         uint64_t size, Status* status) {
  (void)device, (void)stream, (void)status;
  memset(memory->opaque, byte, size);
}
VISIBLE void slot_mem_zero(const Device* device, Stream* stream, Memory* memory, uint64_t size,
                           Status* status) {
  slot_memset(device, stream, memory, 0, size, status);
}
VISIBLE void slot_memset32(const Device* device, Stream* stream, Memory* memory, uint32_t word,
                           uint64_t size, Status* status) {
  (void)device, (void)stream, (void)status;
  for (uint64_t i = 0; i < size / sizeof(word); ++i) ((uint32_t*)memory->opaque)[i] = word;
}
#endif
VISIBLE unsigned char slot_host_callback(const Device* device, Stream* stream, Callback callback,
                                         void* argument) {
  (void)device, (void)stream;
  Status* status = TF_NewStatus();
  callback(argument, status);
  TF_DeleteStatus(status);
  return 1;
}

Executor executor = {
    .struct_size = SIZES ? EXECUTOR_SAYS : 0,
#if MEMORY_SLOTS
    .allocate = slot_allocate,
    .deallocate = slot_deallocate,
    .host_memory_allocate = slot_host_memory_allocate,
    .host_memory_deallocate = slot_host_memory_deallocate,
    .unified_memory_allocate = slot_unified_memory_allocate,
    .unified_memory_deallocate = slot_unified_memory_deallocate,
    .get_allocator_stats = slot_get_allocator_stats,
    .device_memory_usage = slot_device_memory_usage,
#endif
#if STREAM_SLOTS
    .create_stream = slot_create_stream,
#endif
    .destroy_stream = slot_destroy_stream,
    .create_stream_dependency = slot_create_stream_dependency,
    .get_stream_status = slot_get_stream_status,
    .create_event = slot_create_event,
    .destroy_event = slot_destroy_event,
    .get_event_status = slot_get_event_status,
    .record_event = slot_record_event,
    .wait_for_event = slot_wait_for_event,
    .create_timer = slot_create_timer,
    .destroy_timer = slot_destroy_timer,
    .start_timer = slot_start_timer,
    .stop_timer = slot_stop_timer,
    .memcpy_dtoh = slot_memcpy_dtoh,
    .memcpy_htod = slot_memcpy_htod,
    .memcpy_dtod = slot_memcpy_dtod,
    .sync_memcpy_dtoh = slot_sync_memcpy_dtoh,
    .sync_memcpy_htod = slot_sync_memcpy_htod,
    .sync_memcpy_dtod = slot_sync_memcpy_dtod,
    .block_host_for_event = slot_block_host_for_event,
    .block_host_until_done = slot_block_host_until_done,
    .synchronize_all_activity = slot_synchronize_all_activity,
#if HAS_FILLS
    .mem_zero = slot_mem_zero,
    .memset = slot_memset,
    .memset32 = slot_memset32,
#endif
    .host_callback = slot_host_callback,
};
#ifdef WITHOUT
__attribute__((constructor)) static void leave_out(void) { executor.WITHOUT = NULL; }
#endif
