#include "device.h"
#include "machine.h"
#include "slots.h"

namespace host {
namespace {

void allocate(const SP_Device* device, uint64_t size, int64_t, SP_DeviceMemoryBase* mem) {
  mem->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
  mem->opaque = device_of(device).memory.allocate(size);
  mem->size = mem->opaque == nullptr ? 0 : size;
  mem->payload = 0;
}

void deallocate(const SP_Device* device, SP_DeviceMemoryBase* memory) {
  device_of(device).memory.deallocate(memory->opaque);
  memory->opaque = nullptr;
  memory->size = 0;
}

// Host memory and unified memory are the same heap; they do not count as the device's.
void* allocate_plain(const SP_Device*, uint64_t size) { return allocate_aligned(size); }
void deallocate_plain(const SP_Device*, void* memory) { free_aligned(memory); }

// Nothing is reserved ahead and there is no limit of ours.
TF_Bool get_allocator_stats(const SP_Device* device, SP_AllocatorStats* stats) {
  const MemoryCounts counts = device_of(device).memory.counts();
  *stats = SP_AllocatorStats{};
  stats->struct_size = SP_ALLOCATORSTATS_STRUCT_SIZE;
  stats->num_allocs = counts.allocations;
  stats->bytes_in_use = counts.bytes_in_use;
  stats->peak_bytes_in_use = counts.peak_bytes_in_use;
  stats->largest_alloc_size = counts.largest_bytes;
  return 1;
}

TF_Bool device_memory_usage(const SP_Device*, int64_t* free, int64_t* total) {
  MemoryUsage usage;
  if (!memory_usage(usage)) return 0;
  *free = usage.free_bytes;
  *total = usage.total_bytes;
  return 1;
}

}  // namespace

void fill_memory_slots(SP_StreamExecutor& executor) {
  executor.allocate = allocate;
  executor.deallocate = deallocate;
  executor.host_memory_allocate = allocate_plain;
  executor.host_memory_deallocate = deallocate_plain;
  executor.unified_memory_allocate = allocate_plain;
  executor.unified_memory_deallocate = deallocate_plain;
  executor.get_allocator_stats = get_allocator_stats;
  executor.device_memory_usage = device_memory_usage;
}

}  // namespace host
