/* The memory of an executor, device's or host's, as a source of an arena's regions. */
#ifndef MODULAR_TF_CORE_ARENA_EXECUTOR_MEMORY_H_
#define MODULAR_TF_CORE_ARENA_EXECUTOR_MEMORY_H_

#include <stdint.h>

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
 * other than exhaustion becomes the error of the allocation that asked. For arenas only: it may
 * throw. */
void* mtf_executor_memory_allocate(void* context, uint64_t bytes);
void mtf_executor_memory_free(void* context, void* address, uint64_t bytes);

/* Regions that have not come back are given to the executor. [nobody else uses it] */
void mtf_executor_memory_release(void* context);

#ifdef __cplusplus
}
#endif
#endif
