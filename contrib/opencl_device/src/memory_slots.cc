#include <limits>

#include "device.h"
#include "slots.h"

namespace opencl {
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

// These slots have no status to say why: NULL.
void* host_memory_allocate(const SP_Device* device, uint64_t size) {
  try {
    return device_of(device).pinned.allocate(size);
  } catch (const std::exception&) {
    return nullptr;
  }
}

void host_memory_deallocate(const SP_Device* device, void* mem) {
  device_of(device).pinned.deallocate(mem);
}

void* unified_memory_allocate(const SP_Device* device, uint64_t bytes) {
  return device_of(device).unified.allocate(bytes);
}

void unified_memory_deallocate(const SP_Device* device, void* location) {
  device_of(device).unified.deallocate(location);
}

int64_t as_signed(uint64_t bytes) {
  constexpr auto most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  return static_cast<int64_t>(bytes < most ? bytes : most);
}

// Nothing is reserved ahead; how the driver's memory lies is not known.
TF_Bool get_allocator_stats(const SP_Device* device, SP_AllocatorStats* stats) {
  const SharedMemory& memory = device_of(device).memory;
  const MemoryCounts counts = memory.counts();
  *stats = SP_AllocatorStats{};
  stats->struct_size = SP_ALLOCATORSTATS_STRUCT_SIZE;
  stats->num_allocs = counts.allocations;
  stats->bytes_in_use = counts.bytes_in_use;
  stats->peak_bytes_in_use = counts.peak_bytes_in_use;
  stats->largest_alloc_size = counts.largest_bytes;
  stats->has_bytes_limit = 1;
  stats->bytes_limit = as_signed(memory.limit());
  return 1;
}

// OpenCL tells how much memory a device has, not how much of it others use.
TF_Bool device_memory_usage(const SP_Device* device, int64_t* free, int64_t* total) {
  const SharedMemory& memory = device_of(device).memory;
  *total = as_signed(memory.limit());
  *free = *total - memory.counts().bytes_in_use;
  return 1;
}

}  // namespace

void fill_memory_slots(SP_StreamExecutor& executor) {
  executor.allocate = allocate;
  executor.deallocate = deallocate;
  executor.host_memory_allocate = host_memory_allocate;
  executor.host_memory_deallocate = host_memory_deallocate;
  executor.unified_memory_allocate = unified_memory_allocate;
  executor.unified_memory_deallocate = unified_memory_deallocate;
  executor.get_allocator_stats = get_allocator_stats;
  executor.device_memory_usage = device_memory_usage;
}

}  // namespace opencl
