/* Arenas over the memory of an executor, device's or host's. */
#ifndef MODULAR_TF_CORE_EXECUTOR_ARENA_H_
#define MODULAR_TF_CORE_EXECUTOR_ARENA_H_

#include <stdint.h>

#include "arena.h"
#include "error.h"
#include "executor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mtf_executor_memory mtf_executor_memory;

/* `source` is MTF_DEVICE_MEMORY, MTF_HOST_MEMORY or MTF_UNIFIED_MEMORY. The executor must outlive
 * the last request for a region; regions may come back after it. */
mtf_error* mtf_executor_memory_new(mtf_executor* executor, int32_t source,
                                   mtf_executor_memory** memory);

/* A region source; `context` is the mtf_executor_memory. [any thread] What the executor reports
 * other than exhaustion becomes the error of the allocation that asked. */
void* mtf_executor_memory_allocate(void* context, uint64_t bytes);
void mtf_executor_memory_free(void* context, void* address, uint64_t bytes);

/* Regions that have not come back are given to the executor. [nobody else uses it] */
void mtf_executor_memory_release(void* context);

/* Memory of a kind out of an arena over that kind of memory of `executor`; it keeps the arena, and
 * returns there when it is freed or the executor is closed. 0 bytes need no arena. NULL and a kept
 * error on failure, as the functions of executor.h. */
mtf_memory* mtf_arena_memory_new(mtf_executor* executor, mtf_arena* arena, int32_t source,
                                 uint64_t size);

#ifdef __cplusplus
}
#endif
#endif
