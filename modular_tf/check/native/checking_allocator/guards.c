#include "guards.h"

#include <stdint.h>
#include <string.h>

#include "violations.h"

enum { GUARD_BYTE = 0xb7, FREED_BYTE = 0xdd, FRESH_BYTE = 0xcd };

/* Larger blocks are looked at in part only: nobody waits for gigabytes to be filled. */
static const size_t most_filled = (size_t)1 << 20;

static size_t filled(size_t size) { return size < most_filled ? size : most_filled; }

/* The first byte that is not `expected`, -1 for none. */
static ptrdiff_t first_other(const unsigned char* bytes, size_t size, unsigned char expected) {
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != expected) return (ptrdiff_t)i;
  }
  return -1;
}

/* The last one. */
static ptrdiff_t last_other(const unsigned char* bytes, size_t size, unsigned char expected) {
  while (size > 0 && bytes[size - 1] == expected) --size;
  return (ptrdiff_t)size - 1;
}

void write_guards(const block* guarded) {
  memset(guarded->start - FRONT_GUARD, GUARD_BYTE, FRONT_GUARD);
  memset(guarded->start + guarded->size, GUARD_BYTE, REAR_GUARD);
}

void check_guards(const block* guarded) {
  const unsigned char* front = guarded->start - FRONT_GUARD;
  const ptrdiff_t before = last_other(front, FRONT_GUARD, GUARD_BYTE);
  if (before >= 0) {
    report_violation("heap block of %zu bytes underrun: the byte %zu before it is 0x%02x",
                     guarded->size, (size_t)(FRONT_GUARD - before), (unsigned)front[before]);
  }
  const unsigned char* rear = guarded->start + guarded->size;
  const ptrdiff_t behind = first_other(rear, REAR_GUARD, GUARD_BYTE);
  if (behind >= 0) {
    report_violation("heap block of %zu bytes overrun: byte %zu is 0x%02x", guarded->size,
                     guarded->size + (size_t)behind, (unsigned)rear[behind]);
  }
  if (before >= 0 || behind >= 0) write_guards(guarded);
}

void poison_freed(const block* freed) { memset(freed->start, FREED_BYTE, filled(freed->size)); }

void check_poison(const block* freed) {
  const ptrdiff_t written = first_other(freed->start, filled(freed->size), FREED_BYTE);
  if (written < 0) return;
  report_violation("heap block of %zu bytes written to after it was freed: byte %zu is 0x%02x",
                   freed->size, (size_t)written, (unsigned)freed->start[written]);
  poison_freed(freed);
}

void fill_fresh(void* start, size_t size) { memset(start, FRESH_BYTE, filled(size)); }
