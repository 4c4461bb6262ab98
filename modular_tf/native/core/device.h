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

/* SE_InitPlugin(params, status). */
mtf_error* mtf_se_init_plugin(const mtf_plugin* plugin, const char* operation, void* entry,
                              void* params);

/* get_device_count; a plugin that reports no count leaves `count` as it was. */
mtf_error* mtf_se_get_device_count(const mtf_plugin* plugin, const char* operation, void* slot,
                                   const void* platform, int32_t* count);

/* `exists`, where it is not NULL, is 1 while the plugin has what is created or destroyed: a caller
 * that is interrupted before it knows how a call ended finds it there. What it calls 0 is not
 * destroyed. */

/* create_device, create_device_fns, create_stream_executor and create_timer_fns: all are
 * `void(const SP_Platform*, X*, TF_Status*)`. */
mtf_error* mtf_se_create(const mtf_plugin* plugin, const char* operation, void* slot,
                         const void* platform, void* params, int32_t* exists);

/* destroy_device, destroy_device_fns, destroy_stream_executor and destroy_timer_fns: all are
 * `void(const SP_Platform*, X*)`. */
mtf_error* mtf_se_destroy(const mtf_plugin* plugin, const char* operation, void* slot,
                          const void* platform, void* object, int32_t* exists);

/* destroy_allocator and destroy_custom_allocator of the RFC of 2020-09-08. */
mtf_error* mtf_se_destroy_allocator(const mtf_plugin* plugin, const char* operation, void* slot,
                                    const void* platform, void* allocator, void* fns,
                                    int32_t* exists);

/* destroy_platform and destroy_platform_fns of the registration: `void(X*)`. */
mtf_error* mtf_se_destroy_registered(const mtf_plugin* plugin, const char* operation, void* slot,
                                     void* object, int32_t* exists);

/* The functions of SP_DeviceFns; a negative answer means "not known". */
mtf_error* mtf_se_get_numa_node(const mtf_plugin* plugin, const char* operation, void* slot,
                                const void* device, int32_t* node);
mtf_error* mtf_se_get_memory_bandwidth(const mtf_plugin* plugin, const char* operation, void* slot,
                                       const void* device, int64_t* bytes_per_second);
mtf_error* mtf_se_get_gflops(const mtf_plugin* plugin, const char* operation, void* slot,
                             const void* device, double* gflops);

#ifdef __cplusplus
}
#endif
