// What plugins do to the heap, right and wrong, for the checking allocator to see.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

// The compiler must not see what is wrong, or it warns, or leaves it out.
template <class T>
T* unseen(T* pointer) {
  asm volatile("" : "+r"(pointer));
  return pointer;
}

char* some_bytes(size_t size) { return unseen(static_cast<char*>(std::malloc(size))); }

struct alignas(128) Wide {
  char bytes[128];
};

void use_all_kinds(int round) {
  auto* plain = static_cast<char*>(std::malloc(round % 700 + 1));
  plain = static_cast<char*>(std::realloc(plain, round % 900 + 1));
  std::memset(plain, 1, round % 900 + 1);
  auto* cleared = static_cast<char*>(std::calloc(round % 40 + 1, 3));
  if (cleared[round % 40] != 0) std::abort();
  void* aligned = std::aligned_alloc(256, 512);
  if (reinterpret_cast<uintptr_t>(aligned) % 256 != 0) std::abort();
  void* page = nullptr;
  if (posix_memalign(&page, 4096, 10) != 0) std::abort();
  const auto wide = std::make_unique<Wide>();
  if (reinterpret_cast<uintptr_t>(wide.get()) % alignof(Wide) != 0) std::abort();
  std::vector<std::string> words(round % 10, std::string(round % 100, 'x'));
  std::free(page);
  std::free(aligned);
  std::free(cleared);
  std::free(plain);
}

void* use_often(void*) {
  for (int round = 0; round < 5000; ++round) use_all_kinds(round);
  return nullptr;
}

void* allocate_eight(void* kept) {
  *static_cast<void**>(kept) = std::malloc(8);
  return nullptr;
}

}  // namespace

EXPORTED void overrun() {
  char* bytes = some_bytes(10);
  *unseen(bytes + 10) = 'x';
  std::free(bytes);
}

EXPORTED void* overrun_and_keep() {
  char* bytes = some_bytes(24);
  *unseen(bytes + 30) = 'x';
  return bytes;
}

EXPORTED void underrun() {
  char* bytes = some_bytes(10);
  *unseen(bytes - 1) = 'x';
  std::free(bytes);
}

EXPORTED void free_twice() {
  char* bytes = some_bytes(10);
  char* again = unseen(bytes);
  std::free(bytes);
  std::free(again);
}

EXPORTED void delete_twice() {
  auto* number = unseen(new int(1));
  auto* again = unseen(number);
  delete number;
  delete again;
}

EXPORTED void free_the_stack() {
  char bytes[64];
  std::free(unseen(bytes + 16));
}

EXPORTED void free_the_middle() {
  char* bytes = some_bytes(64);
  std::free(unseen(bytes + 16));
  std::free(bytes);
}

EXPORTED int resize_the_stack() {
  char bytes[64];
  return std::realloc(unseen(bytes + 16), 100) == nullptr;
}

EXPORTED void write_to_freed() {
  char* bytes = some_bytes(20);
  char* again = unseen(bytes);
  std::free(bytes);
  *unseen(again + 3) = 'x';
}

EXPORTED void write_far_behind() {  // over the whole guard
  char* first = some_bytes(32);
  char* second = some_bytes(32);
  std::memset(unseen(first), 'x', 32 + 64);
  std::free(first);
  std::free(second);
}

EXPORTED void use_well() { use_often(nullptr); }

EXPORTED void* allocate(size_t size) { return some_bytes(size); }
EXPORTED void release(void* block) { std::free(block); }

EXPORTED void* allocate_in_a_thread() {
  void* kept = nullptr;
  pthread_t thread;
  pthread_create(&thread, nullptr, allocate_eight, &kept);
  pthread_join(thread, nullptr);
  return kept;
}

EXPORTED void use_in_threads() {
  pthread_t threads[8];
  for (pthread_t& thread : threads) pthread_create(&thread, nullptr, use_often, nullptr);
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
}

// Forks while other threads hold and want the allocator's locks; returns how many children failed.
EXPORTED int fork_among_threads() {
  pthread_t threads[4];
  for (pthread_t& thread : threads) pthread_create(&thread, nullptr, use_often, nullptr);
  int failed = 0;
  for (int round = 0; round < 100; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (int i = 0; i < 20; ++i) use_all_kinds(i);
      _exit(0);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) ++failed;
  }
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  return failed;
}
