/* Which plugin is built:
 *
 * LAYOUT       its generation; see layouts.h
 * SIZES        1: it sets struct_size everywhere, 0: it never does
 * FORM         how it hands its structs over: FILLS the host's, ASSIGNS them with whatever size its
 *              own have, zeroes the parameters after it SAVED their pointers, points to its OWN
 * ALLOCATOR    of the RFC: NONE, PLAIN, CUSTOM, BOTH, HALF (with nothing to destroy it)
 * ALLOCATOR_LACKS  the number of a function that the allocator has not
 * ALLOCATOR_FAILS  a status code: it cannot be created
 * UNIFIED      1: the plain allocator has unified memory
 * TIMERS       0: it has no functions for timers
 * DEVICES_SAID how many devices it says it has
 * FIRST_FAILS  a status code: what word 4 of SP_PlatformFns creates fails with it
 * NOT_CODE     a slot of SP_PlatformFns that points to data; NOT_CODE_EXECUTOR the same
 * KERNELS      1: it brings kernels too, and uses a function for them at once
 * PLATFORM_NAME, TYPE_NAME   what it calls its platform and the type of its devices
 * DESTROYS     0: destroy_platform and destroy_platform_fns are NULL
 * MEMORY_SLOTS 0: the executor's eight slots of memory are NULL
 * STREAM_SLOTS 0: create_stream is NULL
 * WITHOUT      a slot of the executor that is NULL; waits for streams and their ends are logged
 * PLATFORM_SAYS, FNS_SAYS, EXECUTOR_SAYS   other sizes than the layout's */
#pragma once

#include "layouts.h"

#define VISIBLE __attribute__((visibility("default")))

enum form { FILLS, ASSIGNS, SAVED, OWN };
enum allocator { NONE, PLAIN, CUSTOM, BOTH, HALF };

#ifndef SIZES
#define SIZES 1
#endif
#ifndef FORM
#define FORM FILLS
#endif
#ifndef ALLOCATOR
#define ALLOCATOR NONE
#endif
#ifndef ALLOCATOR_LACKS
#define ALLOCATOR_LACKS -1
#endif
#ifndef ALLOCATOR_FAILS
#define ALLOCATOR_FAILS 0
#endif
#ifndef UNIFIED
#define UNIFIED 0
#endif
#ifndef PLATFORM_SAYS
#define PLATFORM_SAYS PLATFORM_SIZE
#endif
#ifndef FNS_SAYS
#define FNS_SAYS FNS_SIZE
#endif
#ifndef EXECUTOR_SAYS
#define EXECUTOR_SAYS EXECUTOR_SIZE
#endif
#ifndef PLATFORM_NAME
#define PLATFORM_NAME "DIALECT_PLATFORM"
#endif
#ifndef TYPE_NAME
#define TYPE_NAME "DIALECT"
#endif
#ifndef DESTROYS
#define DESTROYS 1
#endif
#ifndef MEMORY_SLOTS
#define MEMORY_SLOTS 1
#endif
#ifndef STREAM_SLOTS
#define STREAM_SLOTS 1
#endif
#ifndef TIMERS
#define TIMERS 1
#endif
#ifndef KERNELS
#define KERNELS 0
#endif

#ifndef DEVICES_SAID
#define DEVICES_SAID 2
#endif
#ifndef FIRST_FAILS
#define FIRST_FAILS 0
#endif

/* Hands `own` over in the way of FORM; `lent` is the host's and becomes what it shall see. */
#define DELIVER(own, lent)                                                          \
  do {                                                                              \
    size_t lent_size = (lent)->struct_size;                                         \
    if (FORM == OWN) {                                                              \
      (lent) = &(own);                                                              \
    } else {                                                                        \
      *(lent) = (own);                                                              \
      if (!SIZES && FORM != ASSIGNS) (lent)->struct_size = lent_size;               \
    }                                                                               \
  } while (0)

extern Executor executor;
void called(const char* name);         /* writes it down for the tests */
void* device_handle(int32_t ordinal); /* of the device that was created */
uint64_t timer_nanoseconds(Timer* timer);
void* aligned_memory(uint64_t size, size_t alignment); /* NULL where there is none */

#if LAYOUT == 2020
void fns_create_allocator(const Platform*, void*, Status*);
void fns_destroy_allocator(const Platform*, void*, void*);
void fns_create_custom_allocator(const Platform*, void*, Status*);
void fns_destroy_custom_allocator(const Platform*, void*, void*);
#endif
