/* Arenas over the memory of an executor, device's or host's. */
#pragma once

#include <stdint.h>

#include "arena.h"
#include "error.h"
#include "executor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An arena over a kind of memory, MTF_DEVICE_MEMORY or MTF_HOST_MEMORY; it keeps the executor. A
 * `bytes_limit` of UINT64_MAX stands for none; the others are as in mtf_arena_options. NULL and a kept
 * error on failure, as the functions of executor.h. What the executor reports other than exhaustion
 * becomes the error of the allocation that asked. What overlaps a region that is in use breaks SE-135,
 * and is not given back. */
mtf_arena* mtf_executor_arena_new(mtf_executor* executor, int32_t source, uint64_t bytes_limit,
                                  int32_t growth, int32_t garbage_collection);

/* Memory of a kind out of an arena over that kind of memory of `executor`; it keeps the arena, and
 * returns there when it is freed or the executor is closed. 0 bytes need no arena. NULL and a kept
 * error on failure, as the functions of executor.h. */
mtf_memory* mtf_arena_memory_new(mtf_executor* executor, mtf_arena* arena, int32_t source,
                                 uint64_t size);

#ifdef __cplusplus
}
#endif
