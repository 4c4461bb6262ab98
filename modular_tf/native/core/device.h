/* The calls into a device plugin.
 *
 * Slots, structs and handles are plain addresses here: where a slot lies in a struct is a matter
 * of the dialect, which Python holds as data. The signatures below are the same in all dialects.
 *
 * Every function checks that the address it is to call is code, and answers INTERNAL when it is
 * not. [any thread] NULL means success. `plugin`, which may be NULL, and `operation` are for messages. */
#pragma once

#include <stdint.h>

#include "error.h"
#include "plugin_call.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The signatures of slots: `X*` are the arguments in their order, S is a TF_Status*. */
enum {
  MTF_SE_INIT = 0,           /* void(X*, S): SE_InitPlugin */
  MTF_SE_CREATE = 1,         /* void(X*, X*, S): create_* of SP_PlatformFns, get_device_count */
  MTF_SE_DESTROY_ALONE = 2,  /* void(X*): destroy_platform, destroy_platform_fns */
  MTF_SE_DESTROY = 3,        /* void(X*, X*): destroy_* of SP_PlatformFns */
  MTF_SE_DESTROY_TWO = 4     /* void(X*, X*, X*): destroy_allocator, destroy_custom_allocator */
};

/* `exists`, where it is not NULL, is 1 while the plugin has what is created or destroyed: a caller
 * that is interrupted before it knows how a call ended finds it there. What it calls 0 is not
 * destroyed. */
mtf_error* mtf_se_call(const mtf_plugin* plugin, const char* operation, void* slot, int32_t signature,
                       void* first, void* second, void* third, int32_t* exists);

/* The types of what SP_DeviceFns answers of a device; a negative answer means "not known". */
enum { MTF_SE_INT32 = 0, MTF_SE_INT64 = 1, MTF_SE_DOUBLE = 2 };
mtf_error* mtf_se_ask(const mtf_plugin* plugin, const char* operation, void* slot, const void* device,
                      int32_t type, void* answer);

#ifdef __cplusplus
}
#endif
