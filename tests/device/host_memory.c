/* Regions of host memory for an arena, with a limit that may be set at any time. [any thread] */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct host_memory {
  size_t alignment;
  atomic_uint_fast64_t limit;
  atomic_uint_fast64_t bytes; /* that were allocated and not freed yet */
  atomic_int references;
};

struct host_memory* host_memory_new(uint64_t alignment, uint64_t limit) {
  struct host_memory* memory = calloc(1, sizeof *memory);
  if (memory == NULL) return NULL;
  memory->alignment = alignment;
  memory->limit = limit;
  memory->references = 1;
  return memory;
}

void host_memory_set_limit(struct host_memory* memory, uint64_t limit) { memory->limit = limit; }

uint64_t host_memory_bytes(struct host_memory* memory) { return memory->bytes; }

void* host_memory_allocate(void* context, uint64_t bytes) {
  struct host_memory* memory = context;
  const uint64_t before = atomic_fetch_add(&memory->bytes, bytes);
  const uint64_t limit = memory->limit;
  void* address = NULL;
  if (before <= limit && bytes <= limit - before &&
      posix_memalign(&address, memory->alignment, bytes) == 0) {
    return address;
  }
  atomic_fetch_sub(&memory->bytes, bytes);
  return NULL;
}

void host_memory_free(void* context, void* address, uint64_t bytes) {
  free(address);
  atomic_fetch_sub(&((struct host_memory*)context)->bytes, bytes);
}

void host_memory_retain(void* context) { ++((struct host_memory*)context)->references; }

void host_memory_release(void* context) {
  if (--((struct host_memory*)context)->references == 0) free(context);
}
