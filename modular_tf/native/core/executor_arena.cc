#include "executor_arena.h"

#include <atomic>
#include <cstdio>
#include <iterator>
#include <map>
#include <new>

#include "arena_allocator.h"
#include "executor_call.h"

struct mtf_executor_memory {
  mtf_executor_memory(mtf_executor* its_executor, int32_t its_source)
      : executor(its_executor), source(its_source) {
    executor->retain();
  }
  ~mtf_executor_memory() {
    for (const auto& region : regions) mtf_memory_free(region.second);
    executor->release();
  }

  mtf_executor* const executor;
  const int32_t source;
  std::atomic<int> references{1};
  mtf::Lock mutex;
  std::map<uintptr_t, mtf_memory*> regions;  // what the executor takes back, by address

  // Files a region unless it overlaps another one.
  bool file(mtf_memory* region) {
    const mtf::LockGuard lock(mutex);
    const uintptr_t start = mtf_memory_address(region);
    const auto next = regions.lower_bound(start);
    if (next != regions.end() && next->first - start < region->base.size) return false;
    if (next != regions.begin()) {
      const auto& [other, previous] = *std::prev(next);
      if (start - other < previous->base.size) return false;
    }
    regions.emplace_hint(next, start, region);
    return true;
  }
};

namespace {

constexpr int kMemoriesDoNotOverlap = 135;

// The executor gave nothing. NULL alone stands for exhaustion; any other error is kept.
void* refuse() {
  mtf::Error error(mtf_take_error());
  if (error.code() == TF_RESOURCE_EXHAUSTED) return nullptr;
  return mtf::fail_with(error.release());
}

// Memory that is returned a second time is not freed again.
mtf::Error given_twice(const mtf_memory* region, const char* slot) {
  char message[200];
  std::snprintf(message, sizeof message,
                "%s returned %p for %llu bytes, which overlap memory that is in use (rule SE-%d);"
                " report it to the plugin's authors",
                slot, region->base.opaque,
                static_cast<unsigned long long>(region->base.size), kMemoriesDoNotOverlap);
  return mtf::make_rule_error(kMemoriesDoNotOverlap, message);
}

// Has the plugin give a region that is not listed yet, and files it.
mtf::Error allocate_region(mtf_executor_memory* memory, mtf_memory* region, uint64_t bytes) {
  region->is_hosts = true;
  if (mtf::Error error = mtf::allocate(region, memory->source, bytes)) return error;
  try {
    if (memory->file(region)) return nullptr;
  } catch (const std::bad_alloc&) {
    region->destroy();
    return mtf::make_error(TF_RESOURCE_EXHAUSTED, "no memory to file a region");
  }
  return given_twice(region, region->owner->allocator->name(memory->source));
}

}  // namespace

extern "C" {

mtf_executor_memory* mtf_executor_memory_new(mtf_executor* executor, int32_t source) {
  auto* made = new (std::nothrow) mtf_executor_memory(executor, source);
  if (made != nullptr) return made;
  return mtf::fail_with(mtf::make_error(TF_RESOURCE_EXHAUSTED, "no memory for a region source"));
}

void* mtf_executor_memory_allocate(void* context, uint64_t bytes) {
  auto* memory = static_cast<mtf_executor_memory*>(context);
  mtf_memory* region = mtf::make_object<mtf_memory>(
      memory->executor,
      [&](mtf_memory* made) { return allocate_region(memory, made, bytes); },
      mtf::kind_of(memory->executor, memory->source));
  return region == nullptr ? refuse() : region->base.opaque;
}

void mtf_executor_memory_free(void* context, void* address, uint64_t) {
  auto* memory = static_cast<mtf_executor_memory*>(context);
  if (memory->executor->is_foreign()) return;  // the parent's, perhaps in the middle of a change
  mtf_memory* region = nullptr;
  {
    const mtf::LockGuard lock(memory->mutex);
    const auto found = memory->regions.find(reinterpret_cast<uintptr_t>(address));
    if (found == memory->regions.end()) return;
    region = found->second;
    memory->regions.erase(found);
  }
  mtf_memory_free(region);
}

void mtf_executor_memory_retain(void* context) {
  ++static_cast<mtf_executor_memory*>(context)->references;
}

void mtf_executor_memory_release(void* context) {
  auto* memory = static_cast<mtf_executor_memory*>(context);
  if (--memory->references == 0 && !memory->executor->is_foreign()) delete memory;
}

mtf_memory* mtf_arena_memory_new(mtf_executor* executor, mtf_arena* arena, int32_t source,
                                 uint64_t size) {
  const auto create = [&](mtf_memory* memory) -> mtf::Error {
    if (size == 0) return nullptr;
    uintptr_t address = mtf_arena_take(arena, size);
    if (address == 0) {
      if (mtf_error* error = mtf_arena_allocate(arena, size, &address)) return mtf::Error(error);
    }
    mtf_arena_retain(arena);
    memory->arena = arena;
    memory->base.opaque = reinterpret_cast<void*>(address);
    memory->base.size = size;
    return nullptr;
  };
  return mtf::make_object<mtf_memory>(executor, create, mtf::kind_of(executor, source));
}

}  // extern "C"
