// Errors of arenas, built together with the core's sources, whose malloc gives nothing.
#include <cstddef>
#include <cstring>

#include "arena.h"
#include "error.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

void* give_nothing(void*, uint64_t) { return nullptr; }
void take_nothing(void*, void*, uint64_t) {}

}  // namespace

extern "C" void* __wrap_malloc(size_t) { return nullptr; }

// Whether the error of an exhausted arena says that something was closed.
EXPORT int exhausted_is_closed(int after_a_closed_one) {
  const mtf_arena_options options = {"arena", 1 << 20, 1,       0,      give_nothing,
                                     take_nothing, nullptr, nullptr, nullptr};
  mtf_arena* arena = nullptr;
  uintptr_t address = 0;
  mtf_arena_new(&options, &arena);
  const mtf_error* exhausted = mtf_arena_allocate(arena, 256, &address);
  if (after_a_closed_one != 0) {
    mtf_arena_close(arena);
    mtf_arena_allocate(arena, 256, &address);
  }
  const bool is_shared = std::strcmp(exhausted->message, "out of memory") == 0;
  const int closed = is_shared ? exhausted->closed : -1;
  mtf_arena_release(arena);
  return closed;
}
