/* The patterns on both sides of a block, and the one in freed memory. */
#pragma once

#include <stddef.h>

#include "block_table.h"

enum {
  FRONT_GUARD = 32, /* keeps the 16-byte alignment of the C library's blocks */
  REAR_GUARD = 64,
};

void write_guards(const block* guarded);

/* Reports what was written beside a block, and repairs the guards, so that it is told once. */
void check_guards(const block* guarded);

void poison_freed(const block* freed);

/* Reports what was written to a block after it was freed, and repairs it. */
void check_poison(const block* freed);

/* Fills memory that nobody has written to yet: who reads it notices. */
void fill_fresh(void* start, size_t size);
