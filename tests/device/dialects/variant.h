/* Which plugin is built:
 *
 * LAYOUT       its generation; see layouts.h
 * SIZES        1: it sets struct_size everywhere, 0: it never does
 * FORM         how it hands its structs over: FILLS the host's, ASSIGNS them with whatever size its
 *              own have, zeroes the parameters after it SAVED their pointers, points to its OWN
 * ALLOCATOR    of the RFC: NONE, PLAIN, CUSTOM, BOTH, HALF (with nothing to destroy it)
 * TIMERS       0: it has no functions for timers
 * FILL_SLOTS   0: the slots of mem_zero, memset and memset32 are NULL
 * DEVICES_SAID how many devices it says it has
 * FIRST_FAILS  a status code: what word 4 of SP_PlatformFns creates fails with it
 * NOT_CODE     a slot of SP_PlatformFns that points to data; NOT_CODE_EXECUTOR the same
 * PLATFORM_SAYS, FNS_SAYS, EXECUTOR_SAYS   other sizes than the layout's */
#ifndef DIALECTS_VARIANT_H_
#define DIALECTS_VARIANT_H_

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
#ifndef PLATFORM_SAYS
#define PLATFORM_SAYS PLATFORM_SIZE
#endif
#ifndef FNS_SAYS
#define FNS_SAYS FNS_SIZE
#endif
#ifndef EXECUTOR_SAYS
#define EXECUTOR_SAYS EXECUTOR_SIZE
#endif
#ifndef TIMERS
#define TIMERS 1
#endif
#ifndef FILL_SLOTS
#define FILL_SLOTS 1
#endif

#ifndef DEVICES_SAID
#define DEVICES_SAID 2
#endif
#ifndef FIRST_FAILS
#define FIRST_FAILS 0
#endif

extern Executor executor;

#endif
