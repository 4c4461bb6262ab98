/* Arenas over the memory of an executor, device's or host's. */
#pragma once

#include <stdint.h>

#include "arena.h"
#include "error.h"
#include "executor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mtf_executor_memory mtf_executor_memory;

/* `source` is MTF_DEVICE_MEMORY, MTF_HOST_MEMORY or MTF_UNIFIED_MEMORY. It keeps the executor. NULL
 * and a kept error on failure, as the functions of executor.h. */
mtf_executor_memory* mtf_executor_memory_new(mtf_executor* executor, int32_t source);

/* A region source for any number of arenas; `context` is the mtf_executor_memory. [any thread] What
 * the executor reports other than exhaustion becomes the error of the allocation that asked. What
 * overlaps a region that is in use breaks SE-135, and is not given back. */
void* mtf_executor_memory_allocate(void* context, uint64_t bytes);
void mtf_executor_memory_free(void* context, void* address, uint64_t bytes);

/* References. With the last one, regions that have not come back are given to the executor. */
void mtf_executor_memory_retain(void* context);
void mtf_executor_memory_release(void* context);

/* Memory of a kind out of an arena over that kind of memory of `executor`; it keeps the arena, and
 * returns there when it is freed or the executor is closed. 0 bytes need no arena. NULL and a kept
 * error on failure, as the functions of executor.h. */
mtf_memory* mtf_arena_memory_new(mtf_executor* executor, mtf_arena* arena, int32_t source,
                                 uint64_t size);

#ifdef __cplusplus
}
#endif
