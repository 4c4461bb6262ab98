#include "arena.h"

#include <atomic>
#include <cstring>
#include <new>
#include <string>

#include "arena_allocator.h"
#include "guard.h"

struct mtf_arena {
  explicit mtf_arena(const mtf_arena_options& options) : arena(options) {}

  std::atomic<int64_t> references{1};
  mtf::Arena arena;
};

namespace {

mtf_error* no_host_memory() {
  return mtf::make_error(TF_RESOURCE_EXHAUSTED, "the host has no memory for the tables of an arena");
}

// Runs `call`, which may find that the host has no memory.
template <class Call>
mtf_error* with_tables(Call&& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return no_host_memory();
  }
}

}  // namespace

extern "C" {

mtf_error* mtf_arena_new(const mtf_arena_options* options, mtf_arena** arena) {
  if (options->allocate == nullptr || options->free == nullptr) {
    return mtf::make_error(TF_INVALID_ARGUMENT, "an arena needs a source that can allocate and free");
  }
  return with_tables([&]() -> mtf_error* {
    *arena = new mtf_arena(*options);
    return nullptr;
  });
}

uintptr_t mtf_arena_take(mtf_arena* arena, uint64_t bytes) {
  try {
    return arena->arena.take(bytes);
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

mtf_error* mtf_arena_allocate(mtf_arena* arena, uint64_t bytes, uintptr_t* address) {
  return with_tables([&] { return arena->arena.allocate(bytes, address); });
}

mtf_error* mtf_arena_free(mtf_arena* arena, uintptr_t address) {
  return with_tables([&] { return arena->arena.free(address); });
}

uint64_t mtf_arena_allocated_bytes(mtf_arena* arena, uintptr_t address) {
  return arena->arena.allocated_bytes(address);
}

void mtf_arena_get_stats(mtf_arena* arena, mtf_allocator_stats* stats) {
  *stats = arena->arena.stats();
}

char* mtf_arena_picture(mtf_arena* arena) {
  try {
    return strdup(arena->arena.picture().c_str());
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

mtf_error* mtf_arena_close(mtf_arena* arena) {
  return with_tables([&] { return arena->arena.close(); });
}

void mtf_arena_retain(mtf_arena* arena) { ++arena->references; }

void mtf_arena_release(mtf_arena* arena) {
  if (--arena->references == 0 && !arena->arena.is_abandoned()) delete arena;
}

}  // extern "C"
