#include "executor_arena.h"

#include <atomic>
#include <cstdio>
#include <iterator>
#include <map>
#include <mutex>
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
  std::mutex mutex;
  std::map<uintptr_t, mtf_memory*> regions;  // what the executor takes back, by address

  // Files a region unless it overlaps another one.
  bool file(mtf_memory* region) {
    const std::lock_guard<std::mutex> lock(mutex);
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

constexpr int kResourceExhausted = 8;
constexpr int kMemoriesDoNotOverlap = 135;

// Reads why the executor gave nothing: NULL stands for exhaustion, anything else is thrown.
void* refuse() {
  mtf_error* error = mtf_take_error();
  if (error != nullptr && error->code != kResourceExhausted) throw mtf::SourceError{error};
  mtf_error_free(error);
  return nullptr;
}

// Nobody gives a memory back that is given a second time: the first one does.
mtf_error* given_twice(const mtf_memory* region, const char* slot) {
  char message[200];
  std::snprintf(message, sizeof message,
                "%s returned %p for %llu bytes, which overlap memory that is in use (rule SE-%d);"
                " report it to the plugin's authors",
                slot, region->base.opaque,
                static_cast<unsigned long long>(region->base.size), kMemoriesDoNotOverlap);
  return mtf::make_rule_error(kMemoriesDoNotOverlap, message);
}

// Has the plugin give a region that is not listed yet, and files it.
mtf_error* allocate_region(mtf_executor_memory* memory, mtf_memory* region, uint64_t bytes) {
  region->is_region = true;
  if (mtf_error* error = mtf::allocate(region, memory->source, bytes)) return error;
  try {
    if (memory->file(region)) return nullptr;
  } catch (const std::bad_alloc&) {
    region->destroy();
    return mtf::make_error(kResourceExhausted, "no memory to file a region");
  }
  return given_twice(region, region->owner->allocator->name(memory->source));
}

}  // namespace

extern "C" {

mtf_executor_memory* mtf_executor_memory_new(mtf_executor* executor, int32_t source) {
  auto* made = new (std::nothrow) mtf_executor_memory(executor, source);
  if (made != nullptr) return made;
  return mtf::fail_with(mtf::make_error(kResourceExhausted, "no memory for a region source"));
}

void* mtf_executor_memory_allocate(void* context, uint64_t bytes) {
  auto* memory = static_cast<mtf_executor_memory*>(context);
  mtf_memory* region = mtf::make_object<mtf_memory>(
      memory->executor,
      [&](mtf_memory* made) { return allocate_region(memory, made, bytes); },
      mtf::kind_of(memory->source));
  return region == nullptr ? refuse() : region->base.opaque;
}

void mtf_executor_memory_free(void* context, void* address, uint64_t) {
  auto* memory = static_cast<mtf_executor_memory*>(context);
  mtf_memory* region = nullptr;
  {
    const std::lock_guard<std::mutex> lock(memory->mutex);
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
  if (--memory->references == 0) delete memory;
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
  return mtf::make_object<mtf_memory>(executor, create, mtf::kind_of(source));
}

}  // extern "C"
