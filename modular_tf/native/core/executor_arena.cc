#include "executor_arena.h"

#include <new>
#include <unordered_map>

#include "arena_allocator.h"
#include "executor_state.h"
#include "guard.h"

struct mtf_executor_memory {
  mtf_executor* executor;
  int32_t source;
  mtf::Lock mutex;
  std::unordered_map<void*, mtf_memory*> regions;  // what an executor takes back, by address
};

namespace {

constexpr int kResourceExhausted = 8;

// The executor gave nothing. NULL alone stands for exhaustion; any other error is kept.
void* refuse() {
  mtf::Error error(mtf_take_error());
  if (error.code() == kResourceExhausted) return nullptr;
  return mtf::fail_with(error.release());
}

}  // namespace

extern "C" {

mtf_error* mtf_executor_memory_new(mtf_executor* executor, int32_t source,
                                   mtf_executor_memory** memory) {
  auto* made = new (std::nothrow) mtf_executor_memory;
  if (made == nullptr) return mtf::make_error(kResourceExhausted, "no memory for a region source");
  made->executor = executor;
  made->source = source;
  *memory = made;
  return nullptr;
}

void* mtf_executor_memory_allocate(void* context, uint64_t bytes) {
  auto* memory = static_cast<mtf_executor_memory*>(context);
  mtf_memory* region = mtf_memory_new(memory->executor, memory->source, bytes);
  if (region == nullptr) return refuse();
  region->is_region = true;
  void* address = mtf_memory_address(region);
  const mtf::LockGuard lock(memory->mutex);
  try {
    if (memory->regions.emplace(address, region).second) return address;
  } catch (const std::bad_alloc&) {
    mtf_memory_free(region);
    throw;
  }
  // The plugin returned one address twice; freeing it here would take the first one away.
  return mtf::fail_with(mtf::make_error(13, "the plugin returned memory that is in use"));
}

void mtf_executor_memory_free(void* context, void* address, uint64_t) {
  auto* memory = static_cast<mtf_executor_memory*>(context);
  mtf_memory* region = nullptr;
  {
    const mtf::LockGuard lock(memory->mutex);
    const auto found = memory->regions.find(address);
    if (found == memory->regions.end()) return;
    region = found->second;
    memory->regions.erase(found);
  }
  mtf_memory_free(region);
}

void mtf_executor_memory_release(void* context) {
  auto* memory = static_cast<mtf_executor_memory*>(context);
  for (const auto& region : memory->regions) mtf_memory_free(region.second);
  delete memory;
}

mtf_memory* mtf_arena_memory_new(mtf_executor* executor, mtf_arena* arena, int32_t source,
                                 uint64_t size) {
  const auto create = [&](mtf_memory* memory) -> mtf_error* {
    if (size == 0) return nullptr;
    uintptr_t address = mtf_arena_take(arena, size);
    if (address == 0) {
      if (mtf_error* error = mtf_arena_allocate(arena, size, &address)) return error;
    }
    mtf_arena_retain(arena);
    memory->arena = arena;
    memory->base.opaque = reinterpret_cast<void*>(address);
    memory->base.size = size;
    return nullptr;
  };
  const bool is_hosts = source != MTF_DEVICE_MEMORY;
  return mtf::make_object<mtf_memory>(executor, create,
                                      is_hosts ? mtf::Kind::kHostMemory : mtf::Kind::kMemory);
}

}  // extern "C"
