#include <string.h>

#include "good_device.h"
#include "ledger.h"

/* ---- Allocation ---- */

static void allocate(const SP_Device* device, uint64_t size, int64_t space,
                     SP_DeviceMemoryBase* memory) {
  (void)device, (void)space;
  int64_t now, peak;
  ledger_usage(&now, &peak);
  memory->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
  memory->size = size;
  memory->opaque = size <= (uint64_t)(DEVICE_MEMORY - now) ? ledger_allocate(LEDGER_BLOCKS, size)
                                                          : NULL;
}

static void deallocate(const SP_Device* device, SP_DeviceMemoryBase* memory) {
  (void)device;
  ledger_free(LEDGER_BLOCKS, memory->opaque);
  memory->opaque = NULL;
}

static void* host_allocate(const SP_Device* device, uint64_t size) {
  (void)device;
  return ledger_allocate(LEDGER_HOST_BLOCKS, size);
}

static void host_deallocate(const SP_Device* device, void* memory) {
  (void)device;
  ledger_free(LEDGER_HOST_BLOCKS, memory);
}

static TF_Bool get_allocator_stats(const SP_Device* device, SP_AllocatorStats* stats) {
  (void)device;
  stats->struct_size = SP_ALLOCATORSTATS_STRUCT_SIZE;
  stats->num_allocs = ledger_alive(LEDGER_BLOCKS);
  ledger_usage(&stats->bytes_in_use, &stats->peak_bytes_in_use);
  stats->has_bytes_limit = 1;
  stats->bytes_limit = DEVICE_MEMORY;
  return 1;
}

static TF_Bool memory_usage(const SP_Device* device, int64_t* free, int64_t* total) {
  (void)device;
  int64_t now, peak;
  ledger_usage(&now, &peak);
  *free = DEVICE_MEMORY - now;
  *total = DEVICE_MEMORY;
  return 1;
}

/* ---- Copies and fills: done when they return, whatever the stream ---- */

static void copy_to_host(const SP_Device* device, SP_Stream stream, void* target,
                         const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  (void)device, (void)stream;
  memcpy(target, source->opaque, size);
  succeed(status);
}

static void copy_to_device(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                           const void* source, uint64_t size, TF_Status* status) {
  (void)device, (void)stream;
  memcpy(target->opaque, source, size);
  succeed(status);
}

static void copy_on_device(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                           const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  (void)device, (void)stream;
  memmove(target->opaque, source->opaque, size);
  succeed(status);
}

static void copy_to_host_now(const SP_Device* device, void* target,
                             const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  copy_to_host(device, NULL, target, source, size, status);
}

static void copy_to_device_now(const SP_Device* device, SP_DeviceMemoryBase* target,
                               const void* source, uint64_t size, TF_Status* status) {
  copy_to_device(device, NULL, target, source, size, status);
}

static void copy_on_device_now(const SP_Device* device, SP_DeviceMemoryBase* target,
                               const SP_DeviceMemoryBase* source, uint64_t size,
                               TF_Status* status) {
  copy_on_device(device, NULL, target, source, size, status);
}

static void fill_bytes(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                       uint8_t pattern, uint64_t size, TF_Status* status) {
  (void)device, (void)stream;
  memset(target->opaque, pattern, size);
  succeed(status);
}

static void fill_zero(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                      uint64_t size, TF_Status* status) {
  fill_bytes(device, stream, target, 0, size, status);
}

static void fill_words(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                       uint32_t pattern, uint64_t size, TF_Status* status) {
  (void)device, (void)stream;
  for (uint64_t at = 0; at + sizeof(pattern) <= size; at += sizeof(pattern))
    memcpy((char*)target->opaque + at, &pattern, sizeof(pattern));
  succeed(status);
}

void fill_memory_slots(SP_StreamExecutor* executor) {
  executor->allocate = allocate;
  executor->deallocate = deallocate;
  executor->host_memory_allocate = host_allocate;
  executor->host_memory_deallocate = host_deallocate;
  executor->unified_memory_allocate = host_allocate;
  executor->unified_memory_deallocate = host_deallocate;
  executor->get_allocator_stats = get_allocator_stats;
  executor->device_memory_usage = memory_usage;
  executor->memcpy_dtoh = copy_to_host;
  executor->memcpy_htod = copy_to_device;
  executor->memcpy_dtod = copy_on_device;
  executor->sync_memcpy_dtoh = copy_to_host_now;
  executor->sync_memcpy_htod = copy_to_device_now;
  executor->sync_memcpy_dtod = copy_on_device_now;
  executor->mem_zero = fill_zero;
  executor->memset = fill_bytes;
  executor->memset32 = fill_words;
}
