#include "executor_arena.h"

#include <cstdio>
#include <iterator>
#include <map>
#include <new>

#include "arena_allocator.h"
#include "executor_call.h"

namespace {

constexpr int kMemoriesDoNotOverlap = 135;

// The source of an arena's regions, which ends with the arena.
struct Source {
  Source(mtf_executor* its_executor, int32_t its_kind) : executor(its_executor), kind(its_kind) {
    executor->retain();
  }
  ~Source() {
    for (const auto& region : regions) mtf_memory_free(region.second);
    executor->release();
  }

  mtf_executor* const executor;
  const int32_t kind;  // MTF_DEVICE_MEMORY or MTF_HOST_MEMORY
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
mtf::Error add_region(Source* source, mtf_memory* region, uint64_t bytes) {
  region->is_hosts = true;
  if (mtf::Error error = mtf::allocate(region, source->kind, bytes)) return error;
  try {
    if (source->file(region)) return nullptr;
  } catch (const std::bad_alloc&) {
    region->destroy();
    return mtf::make_error(TF_RESOURCE_EXHAUSTED, "no memory to file a region");
  }
  return given_twice(region, region->owner->allocator->name(source->kind));
}

// NULL alone stands for exhaustion; any other error is kept.
void* allocate_region(void* context, uint64_t bytes) {
  auto* source = static_cast<Source*>(context);
  mtf_memory* region = mtf::make_object<mtf_memory>(
      source->executor, [&](mtf_memory* made) { return add_region(source, made, bytes); },
      mtf::kind_of(source->executor, source->kind));
  if (region != nullptr) return region->base.opaque;
  mtf::Error error(mtf_take_error());
  return error.code() == TF_RESOURCE_EXHAUSTED ? nullptr : mtf::fail_with(error.release());
}

void free_region(void* context, void* address, uint64_t) {
  auto* source = static_cast<Source*>(context);
  if (source->executor->is_foreign()) return;  // the parent's, perhaps in the middle of a change
  mtf_memory* region = nullptr;
  {
    const mtf::LockGuard lock(source->mutex);
    const auto found = source->regions.find(reinterpret_cast<uintptr_t>(address));
    if (found == source->regions.end()) return;
    region = found->second;
    source->regions.erase(found);
  }
  mtf_memory_free(region);
}

void end_source(void* context) {
  auto* source = static_cast<Source*>(context);
  if (!source->executor->is_foreign()) delete source;
}

}  // namespace

extern "C" {

mtf_arena* mtf_executor_arena_new(mtf_executor* executor, int32_t source, uint64_t bytes_limit,
                                  int32_t growth, int32_t garbage_collection) {
  auto* made = new (std::nothrow) Source(executor, source);
  if (made == nullptr) {
    return mtf::fail_with(mtf::make_error(TF_RESOURCE_EXHAUSTED, "no memory for a region source"));
  }
  char name[sizeof executor->name + 16];
  std::snprintf(name, sizeof name, "%s%s", executor->name,
                source == MTF_DEVICE_MEMORY ? "" : " host memory");
  const mtf_arena_options options = {name, bytes_limit, growth, garbage_collection,
                                     allocate_region, free_region, nullptr, end_source, made};
  mtf_arena* arena = nullptr;
  if (mtf_error* error = mtf_arena_new(&options, &arena)) {
    delete made;
    return mtf::fail_with(error);
  }
  return arena;
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
