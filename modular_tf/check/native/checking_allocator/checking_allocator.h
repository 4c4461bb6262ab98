/* What a process that runs with the checking allocator can ask it: found by name at run time, since
 * the library is only there where it was preloaded.
 *
 * The allocator stands in for malloc and its kin. Every block lies between guards, which are looked
 * at when it is freed and on demand; freed memory is overwritten and kept for a while; a second
 * free, and the free of what is no block, do nothing. What is found is kept as a sentence, and
 * written to stderr; the process goes on. Any thread may call anything here. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MTF_HEAP_API __attribute__((visibility("default")))

/* Blocks that were allocated inside of brackets, and what was found anywhere. */
typedef struct mtf_heap_counters {
  int64_t live_blocks;
  int64_t live_bytes;
  uint64_t allocations; /* ever */
  uint64_t violations;  /* ever */
} mtf_heap_counters;

/* A bracket: what the calling thread allocates between the two belongs to the plugin. They nest.
 * What other threads allocate meanwhile, the plugin's own among them, is nobody's. */
MTF_HEAP_API void mtf_heap_enter(void);
MTF_HEAP_API void mtf_heap_leave(void);

MTF_HEAP_API void mtf_heap_count(mtf_heap_counters* counters);

/* Looks at the guards of all live blocks of the plugin; with `deep` also at the freed memory that
 * is still kept. Returns how many violations there are by now. */
MTF_HEAP_API uint64_t mtf_heap_inspect(int deep);

/* Copies the sentence on violation `index`, counted from 0, NUL-terminated; 0 where it is not kept
 * (any more). */
MTF_HEAP_API int mtf_heap_violation(uint64_t index, char* text, size_t size);

/* The size that was asked for, -1 where no live block begins at `address`. */
MTF_HEAP_API int64_t mtf_heap_size_of(const void* address);
