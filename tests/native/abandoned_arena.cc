// An arena that another thread changes at a fork. The child ends with 0 when all calls refuse it.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "arena.h"

namespace {

std::atomic<bool> waits{false}, goes_on{false};
thread_local bool shall_wait = false;

void check(bool holds) {
  if (!holds) std::abort();
}

void* give(void*, uint64_t bytes) { return std::aligned_alloc(256, bytes); }
void take(void*, void* address, uint64_t) { std::free(address); }

void check_refused(mtf_error* error) {
  check(error != nullptr && error->code == 9 && std::strstr(error->message, "forked") != nullptr);
  mtf_error_free(error);
}

void use_in_child(mtf_arena* arena, uintptr_t live) {
  uintptr_t address = 0;
  check(mtf_arena_take(arena, 256) == 0);
  check_refused(mtf_arena_allocate(arena, 256, &address));
  check_refused(mtf_arena_free(arena, live));
  check(mtf_arena_allocated_bytes(arena, live) == 0);
  mtf_allocator_stats stats;
  mtf_arena_get_stats(arena, &stats);
  check(stats.num_live_allocs == 0);
  char* picture = mtf_arena_picture(arena);
  check(std::strlen(picture) == 0);
  std::free(picture);
  check_refused(mtf_arena_close(arena));
  mtf_arena_release(arena);
}

// Returns how a child ended that used the arena.
int status_of_child(mtf_arena* arena, uintptr_t live) {
  const pid_t child = fork();
  if (child == 0) {
    use_in_child(arena, live);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace

// Holds a thread up in the middle of a change to the tables.
void* operator new(size_t bytes) {
  if (shall_wait) {
    waits = true;
    while (!goes_on) std::this_thread::yield();
  }
  void* made = std::malloc(bytes);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}
void operator delete(void* made) noexcept { std::free(made); }
void operator delete(void* made, size_t) noexcept { std::free(made); }

int main() {
  const mtf_arena_options options = {"arena", 1 << 30, 1,       0,      give,
                                     take,    nullptr, nullptr, nullptr};
  mtf_arena* arena = nullptr;
  uintptr_t live = 0;
  check(mtf_arena_new(&options, &arena) == nullptr);
  check(mtf_arena_allocate(arena, 256, &live) == nullptr);
  std::thread changes([arena] {
    shall_wait = true;
    uintptr_t address = 0;
    check(mtf_arena_allocate(arena, 4 << 20, &address) == nullptr);
    shall_wait = false;
    check(mtf_arena_free(arena, address) == nullptr);
  });
  while (!waits) std::this_thread::yield();
  const int status = status_of_child(arena, live);
  goes_on = true;
  changes.join();
  check(mtf_arena_free(arena, live) == nullptr);
  check(mtf_arena_close(arena) == nullptr);
  mtf_arena_release(arena);
  return status == 0 ? 0 : 1;
}
