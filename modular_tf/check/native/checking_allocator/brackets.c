#include "brackets.h"

#include <stdatomic.h>

#include "checking_allocator.h"
#include "violations.h"

static __thread int depth;

static atomic_int_fast64_t live_blocks;
static atomic_int_fast64_t live_bytes;
static atomic_uint_fast64_t allocations;

void mtf_heap_enter(void) { ++depth; }

void mtf_heap_leave(void) { --depth; }

bool is_of_plugin(void) { return depth > 0; }

void count_allocation(size_t size) {
  atomic_fetch_add(&live_blocks, 1);
  atomic_fetch_add(&live_bytes, (int_fast64_t)size);
  atomic_fetch_add(&allocations, 1);
}

void count_free(size_t size) {
  atomic_fetch_sub(&live_blocks, 1);
  atomic_fetch_sub(&live_bytes, (int_fast64_t)size);
}

void mtf_heap_count(mtf_heap_counters* counters) {
  counters->live_blocks = atomic_load(&live_blocks);
  counters->live_bytes = atomic_load(&live_bytes);
  counters->allocations = atomic_load(&allocations);
  counters->violations = violation_count();
}
