/* A best-fit allocator with coalescing, over regions that a source provides.
 *
 * The numbers are those of TensorFlow's allocator for devices: sizes are rounded up to 256 bytes,
 * free chunks lie in 21 bins of 256 * 2^n bytes, a region grows from 2 MiB by doubling. What the
 * arena knows of its memory lies outside of it: device memory cannot be read by the host.
 *
 * All functions: [any thread], unless they say otherwise. One lock per arena; it is not held while a
 * source is called, which may wait for threads that use the arena. One thread at a time asks for a
 * region; others that need one wait until it has come, or until enough is freed. NULL means success.
 *
 * In a forked child an arena that another thread was changing refuses all calls with
 * FAILED_PRECONDITION, has no figures and is never destroyed: its tables may be half changed. */
#pragma once

#include <stdint.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mtf_arena mtf_arena;

/* Returns `bytes` bytes, best aligned to 256, or NULL where there are no more, or mtf_take_error tells
 * why. */
typedef void* (*mtf_region_allocate)(void* context, uint64_t bytes);
/* Takes back what mtf_region_allocate returned, with the same size. */
typedef void (*mtf_region_free)(void* context, void* address, uint64_t bytes);
/* An arena begins to use the source, and has made its last call. */
typedef void (*mtf_source_retain)(void* context);
typedef void (*mtf_source_release)(void* context);

typedef struct mtf_arena_options {
  const char* name;             /* for messages; copied */
  uint64_t bytes_limit;         /* regions together are never larger */
  int32_t growth;               /* 0: one region of the whole limit at the first request */
  int32_t garbage_collection;   /* 1: unused regions go back to the source on pressure */
  mtf_region_allocate allocate; /* the source */
  mtf_region_free free;
  mtf_source_retain retain;     /* called once, by mtf_arena_new; may be NULL */
  mtf_source_release release;   /* called once, when the arena has ended; may be NULL */
  void* context;
} mtf_arena_options;

/* The figures of an arena, or those that a plugin counts: SP_AllocatorStats without its size. All but
 * counts in bytes. */
typedef struct mtf_allocator_stats {
  int64_t num_allocs;           /* ever made */
  int64_t bytes_in_use;         /* of an arena: in chunks, so with what rounding and splitting left in them */
  int64_t peak_bytes_in_use;
  int64_t largest_alloc_size;   /* of an arena: the largest chunk ever in use */
  int64_t has_bytes_limit;
  int64_t bytes_limit;
  int64_t bytes_reserved;       /* of an arena: in regions, as the source gave them */
  int64_t peak_bytes_reserved;
  int64_t has_bytes_reservable_limit;
  int64_t bytes_reservable_limit;
  int64_t largest_free_block_bytes;
  int64_t num_live_allocs;      /* of an arena only */
} mtf_allocator_stats;

/* Makes an arena; the source is not called yet. */
mtf_error* mtf_arena_new(const mtf_arena_options* options, mtf_arena** arena);

/* An address from the regions that are there, or 0; never waits, never explains. The fast way: on
 * 0, call mtf_arena_allocate. */
uintptr_t mtf_arena_take(mtf_arena* arena, uint64_t bytes);

/* An address, aligned to 256. 0 bytes give address 0, which is no allocation and may be freed.
 * RESOURCE_EXHAUSTED, at once and with a picture of the arena, when the limit or the source is
 * exhausted. */
mtf_error* mtf_arena_allocate(mtf_arena* arena, uint64_t bytes, uintptr_t* address);

/* Takes an allocation back. FAILED_PRECONDITION for one that was freed before, INVALID_ARGUMENT
 * for an address that this arena never gave out; neither changes anything. */
mtf_error* mtf_arena_free(mtf_arena* arena, uintptr_t address);

/* Bytes of the chunk behind a live allocation, at least what was asked for; 0 for others. */
uint64_t mtf_arena_allocated_bytes(mtf_arena* arena, uintptr_t address);

void mtf_arena_get_stats(mtf_arena* arena, mtf_allocator_stats* stats);

/* Text for people: regions, bins, what is in use. Free it with mtf_string_free; NULL: no memory. */
char* mtf_arena_picture(mtf_arena* arena);

/* Refuses allocations from now on. Regions go back now, or when the last allocation is freed. */
mtf_error* mtf_arena_close(mtf_arena* arena);

/* Another reference to the arena. */
void mtf_arena_retain(mtf_arena* arena);

/* Drops the caller's reference. The arena ends with its last reference, and then regions go back
 * whatever lives in them. [nobody else uses this reference] */
void mtf_arena_release(mtf_arena* arena);

#ifdef __cplusplus
}
#endif
