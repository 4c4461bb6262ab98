/* malloc and its kin, in the place of the C library's. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "block_table.h"
#include "brackets.h"
#include "c_library.h"
#include "checking_allocator.h"
#include "guards.h"
#include "quarantine.h"
#include "violations.h"

static const size_t usual_alignment = 16;

/* A new block between its guards, NULL where there is no memory. `alignment` is a power of two. */
static void* allocate(size_t size, size_t alignment) {
  const bool is_usual = alignment <= usual_alignment;
  const size_t front = is_usual || alignment < FRONT_GUARD ? FRONT_GUARD : alignment;
  const size_t whole = front + size + REAR_GUARD;
  if (whole < size) {
    errno = ENOMEM;
    return NULL;
  }
  void* base = is_usual ? __libc_malloc(whole) : __libc_memalign(alignment, whole);
  if (base == NULL) return NULL;
  const block made = {.start = (unsigned char*)base + front, .base = base, .size = size};
  write_guards(&made);
  const bool is_plugins = is_of_plugin();
  if (is_plugins) count_allocation(size);
  block_table_add(is_plugins ? &plugin_blocks : &host_blocks, &made);
  return made.start;
}

/* The same, for memory that its user has yet to write to. */
static void* allocate_fresh(size_t size, size_t alignment) {
  const int before = errno;
  void* made = allocate(size, alignment);
  if (made == NULL) return NULL;
  if (is_of_plugin()) fill_fresh(made, size);
  errno = before;
  return made;
}

/* The table that knows a block, live or freed; NULL where none does. */
static block_table* table_of(const void* start, block* found) {
  if (block_table_find(&host_blocks, start, found)) return &host_blocks;
  if (block_table_find(&plugin_blocks, start, found)) return &plugin_blocks;
  return NULL;
}

static void release(void* start) {
  block freed;
  block_table* table = table_of(start, &freed);
  if (table == NULL) {
    report_violation("free of %p, where no heap block begins", start);
    return;
  }
  /* Only now is it certain that no other thread frees it too. */
  block_table_mark_freed(table, start, &freed);
  if (freed.is_freed) {
    report_violation("heap block of %zu bytes freed twice", freed.size);
    return;
  }
  check_guards(&freed);
  poison_freed(&freed);
  if (table == &plugin_blocks) count_free(freed.size);
  quarantine_add(table, &freed);
}

MTF_HEAP_API void* malloc(size_t size) { return allocate_fresh(size, usual_alignment); }

MTF_HEAP_API void free(void* start) {
  const int before = errno;
  if (start != NULL) release(start);
  errno = before;
}

MTF_HEAP_API void* calloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return NULL;
  }
  void* made = allocate(bytes, usual_alignment);
  return made == NULL ? NULL : memset(made, 0, bytes);
}

/* Every block moves: who keeps an old pointer is found out. */
MTF_HEAP_API void* realloc(void* start, size_t size) {
  if (start == NULL) return malloc(size);
  block old;
  if (table_of(start, &old) == NULL || old.is_freed) {
    report_violation("realloc of %p, where no live heap block begins", start);
    errno = ENOMEM;
    return NULL;
  }
  if (size == 0) {
    free(start);
    return NULL;
  }
  void* made = malloc(size);
  if (made == NULL) return NULL;
  memcpy(made, start, old.size < size ? old.size : size);
  free(start);
  return made;
}

MTF_HEAP_API void* reallocarray(void* start, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return NULL;
  }
  return realloc(start, bytes);
}

static bool is_power_of_two(size_t value) { return value != 0 && (value & (value - 1)) == 0; }

MTF_HEAP_API void* memalign(size_t alignment, size_t size) {
  if (!is_power_of_two(alignment)) {
    errno = EINVAL;
    return NULL;
  }
  return allocate_fresh(size, alignment);
}

MTF_HEAP_API void* aligned_alloc(size_t alignment, size_t size) {
  return memalign(alignment, size);
}

MTF_HEAP_API int posix_memalign(void** result, size_t alignment, size_t size) {
  if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int before = errno;
  void* made = allocate_fresh(size, alignment);
  errno = before;
  if (made == NULL) return ENOMEM;
  *result = made;
  return 0;
}

MTF_HEAP_API void* valloc(size_t size) { return memalign((size_t)getpagesize(), size); }

MTF_HEAP_API void* pvalloc(size_t size) {
  const size_t page = (size_t)getpagesize();
  return memalign(page, (size + page - 1) & ~(page - 1));
}

int64_t mtf_heap_size_of(const void* address) {
  block found;
  return table_of(address, &found) == NULL || found.is_freed ? -1 : (int64_t)found.size;
}

MTF_HEAP_API size_t malloc_usable_size(void* start) {
  const int64_t size = start == NULL ? 0 : mtf_heap_size_of(start);
  return size < 0 ? 0 : (size_t)size;
}

static void check_if_live(const block* visited) {
  if (!visited->is_freed) check_guards(visited);
}

uint64_t mtf_heap_inspect(int deep) {
  block_table_visit(&plugin_blocks, check_if_live);
  if (deep) quarantine_inspect();
  return violation_count();
}
