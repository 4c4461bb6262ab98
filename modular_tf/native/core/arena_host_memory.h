/* Regions of host memory for an arena, with a limit that may be set at any time. [any thread] */
#pragma once

#include <stdint.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mtf_host_memory mtf_host_memory;

/* `alignment` is a power of two, at least that of a pointer. */
mtf_error* mtf_host_memory_new(uint64_t alignment, uint64_t bytes_limit, mtf_host_memory** memory);

/* Further regions are refused while all together would be larger than this. */
void mtf_host_memory_set_limit(mtf_host_memory* memory, uint64_t bytes_limit);

/* Bytes that were allocated and not freed yet. */
uint64_t mtf_host_memory_bytes(mtf_host_memory* memory);

/* A region source for any number of arenas: `context` is the mtf_host_memory. */
void* mtf_host_memory_allocate(void* context, uint64_t bytes);
void mtf_host_memory_free(void* context, void* address, uint64_t bytes);

/* References; with the last one the source ends, and what is still allocated stays so. */
void mtf_host_memory_retain(void* context);
void mtf_host_memory_release(void* context);

#ifdef __cplusplus
}
#endif
