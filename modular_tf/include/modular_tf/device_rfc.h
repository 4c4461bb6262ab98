/* The device plugin interface as the RFC of 2020-09-08 defines it: the StreamExecutor C API with
 * allocators of the plugin's own, before TensorFlow had a release with it.
 *
 * For plugins that bring such an allocator, or that were written after the RFC. Any other plugin
 * uses device.h: TensorFlow accepts no plugin of this layout, and one translation unit cannot use
 * both headers, since they give different structs the same names.
 *
 * The rules at the head of device.h hold here too. What differs:
 * - The number of devices is a field of SP_Platform, not a function.
 * - There are no SP_DeviceFns, no names of a device's hardware, and no functions that fill memory.
 * - Memory comes from the functions of SP_StreamExecutor, or from one of two kinds of allocator; a
 *   plugin with an allocator may leave the memory slots of SP_StreamExecutor NULL.
 * - Only what is called "required" below is. A device without one of the other functions is listed,
 *   and an operation that needs it fails with UNIMPLEMENTED. */
#ifndef MODULAR_TF_DEVICE_RFC_H_
#define MODULAR_TF_DEVICE_RFC_H_

#ifdef MODULAR_TF_DEVICE_H_
#error "modular_tf/device.h declares the same names: a translation unit includes one of the two"
#endif

#include <stddef.h>
#include <stdint.h>

#include "modular_tf/export.h"
#include "modular_tf/status.h"

#ifndef TF_Bool
#define TF_Bool unsigned char
#endif

/* Bytes of TYPE up to the end of MEMBER, without the padding behind it. */
#ifndef TF_OFFSET_OF_END
#define TF_OFFSET_OF_END(TYPE, MEMBER) (offsetof(TYPE, MEMBER) + sizeof(((TYPE*)0)->MEMBER))
#endif

#define SE_MAJOR 0
#define SE_MINOR 0
#define SE_PATCH 1

#ifdef __cplusplus
extern "C" {
#endif

typedef struct SP_Stream_st* SP_Stream; /* a queue of work on one device */
typedef struct SP_Event_st* SP_Event;   /* a mark in a stream */
typedef struct SP_Timer_st* SP_Timer;   /* measures from mark to mark */

/* What host_callback runs: the argument given to it, and a status to report failure in. */
typedef void (*SE_StatusCallbackFn)(void* const callback_arg, TF_Status* const status);

typedef struct SP_TimerFns {
  size_t struct_size;
  void* ext;
  uint64_t (*nanoseconds)(SP_Timer timer); /* between start_timer and stop_timer */
} SP_TimerFns;
#define SP_TIMER_FNS_STRUCT_SIZE TF_OFFSET_OF_END(SP_TimerFns, nanoseconds)

/* All sizes in bytes. No `ext` here. */
typedef struct SP_AllocatorStats {
  size_t struct_size;
  int64_t num_allocs;
  int64_t bytes_in_use;
  int64_t peak_bytes_in_use;
  int64_t largest_alloc_size;
  int8_t has_bytes_limit; /* 0: the next field means nothing */
  int64_t bytes_limit;
  int64_t bytes_reserved;
  int64_t peak_bytes_reserved;
  int8_t has_bytes_reservable_limit; /* 0: the next field means nothing */
  int64_t bytes_reservable_limit;
  int64_t largest_free_block_bytes;
} SP_AllocatorStats;
#define SP_ALLOCATORSTATS_STRUCT_SIZE TF_OFFSET_OF_END(SP_AllocatorStats, largest_free_block_bytes)

typedef enum SE_EventStatus {
  SE_EVENT_UNKNOWN = 0, /* the plugin cannot say: treated as an error */
  SE_EVENT_ERROR = 1,
  SE_EVENT_PENDING = 2,
  SE_EVENT_COMPLETE = 3
} SE_EventStatus;

/* A piece of device memory. The host may make ones of its own that point inside an allocation. */
typedef struct SP_DeviceMemoryBase {
  size_t struct_size;
  void* ext;
  void* opaque;     /* the plugin's; an address or a handle; NULL: allocation failed */
  uint64_t size;    /* bytes */
  uint64_t payload; /* the plugin's */
} SP_DeviceMemoryBase;
#define SP_DEVICE_MEMORY_BASE_STRUCT_SIZE TF_OFFSET_OF_END(SP_DeviceMemoryBase, payload)

typedef struct SP_Device {
  size_t struct_size;
  void* ext;           /* the plugin's */
  int32_t ordinal;     /* 0 .. visible_device_count - 1 */
  void* device_handle; /* the plugin's; NULL is allowed */
} SP_Device;
#define SP_DEVICE_STRUCT_SIZE TF_OFFSET_OF_END(SP_Device, device_handle)

typedef struct SE_CreateDeviceParams {
  size_t struct_size;
  void* ext;
  int32_t ordinal;   /* which device to make */
  SP_Device* device; /* the host's memory, zeroed but for struct_size; the plugin fills it */
} SE_CreateDeviceParams;
#define SE_CREATE_DEVICE_PARAMS_STRUCT_SIZE TF_OFFSET_OF_END(SE_CreateDeviceParams, device)

/* What a device of the platform can do. One table for all ordinals; device.h says what each slot
 * must do. */
typedef struct SP_StreamExecutor {
  size_t struct_size;
  void* ext;

  /* -- memory: not used where the platform creates an allocator -- */
  void (*allocate)(const SP_Device* device, uint64_t size, int64_t memory_space,
                   SP_DeviceMemoryBase* mem);
  void (*deallocate)(const SP_Device* device, SP_DeviceMemoryBase* memory);
  void* (*host_memory_allocate)(const SP_Device* device, uint64_t size);
  void (*host_memory_deallocate)(const SP_Device* device, void* mem);
  void* (*unified_memory_allocate)(const SP_Device* device, uint64_t size);
  void (*unified_memory_deallocate)(const SP_Device* device, void* location);
  TF_Bool (*get_allocator_stats)(const SP_Device* device, SP_AllocatorStats* stats);
  TF_Bool (*device_memory_usage)(const SP_Device* device, int64_t* free, int64_t* total);

  /* -- streams -- */
  void (*create_stream)(const SP_Device* device, SP_Stream* stream, TF_Status* status);
  void (*destroy_stream)(const SP_Device* device, SP_Stream stream);
  void (*create_stream_dependency)(const SP_Device* device, SP_Stream dependent, SP_Stream other,
                                   TF_Status* status);
  void (*get_stream_status)(const SP_Device* device, SP_Stream stream, TF_Status* status);

  /* -- events -- */
  void (*create_event)(const SP_Device* device, SP_Event* event, TF_Status* status);
  void (*destroy_event)(const SP_Device* device, SP_Event event);
  SE_EventStatus (*get_event_status)(const SP_Device* device, SP_Event event);
  void (*record_event)(const SP_Device* device, SP_Stream stream, SP_Event event,
                       TF_Status* status);
  void (*wait_for_event)(const SP_Device* const device, SP_Stream stream, SP_Event event,
                         TF_Status* const status);

  /* -- timers: without them the host measures by its own clock -- */
  void (*create_timer)(const SP_Device* device, SP_Timer* timer, TF_Status* status);
  void (*destroy_timer)(const SP_Device* device, SP_Timer timer);
  void (*start_timer)(const SP_Device* device, SP_Stream stream, SP_Timer timer,
                      TF_Status* status);
  void (*stop_timer)(const SP_Device* device, SP_Stream stream, SP_Timer timer,
                     TF_Status* status);

  /* -- copies on a stream: the buffers stay valid until the stream has passed them -- */
  void (*memcpy_dtoh)(const SP_Device* device, SP_Stream stream, void* host_dst,
                      const SP_DeviceMemoryBase* device_src, uint64_t size, TF_Status* status);
  void (*memcpy_htod)(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* device_dst,
                      const void* host_src, uint64_t size, TF_Status* status);
  void (*memcpy_dtod)(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* device_dst,
                      const SP_DeviceMemoryBase* device_src, uint64_t size, TF_Status* status);
  /* -- copies that are done when they return -- */
  void (*sync_memcpy_dtoh)(const SP_Device* device, void* host_dst,
                           const SP_DeviceMemoryBase* device_src, uint64_t size,
                           TF_Status* status);
  void (*sync_memcpy_htod)(const SP_Device* device, SP_DeviceMemoryBase* device_dst,
                           const void* host_src, uint64_t size, TF_Status* status);
  void (*sync_memcpy_dtod)(const SP_Device* device, SP_DeviceMemoryBase* device_dst,
                           const SP_DeviceMemoryBase* device_src, uint64_t size,
                           TF_Status* status);

  /* -- waiting -- */
  void (*block_host_for_event)(const SP_Device* device, SP_Event event, TF_Status* status);
  /* Optional in the RFC's own words: the host records an event and waits for that. */
  void (*block_host_until_done)(const SP_Device* device, SP_Stream stream, TF_Status* status);
  void (*synchronize_all_activity)(const SP_Device* device, TF_Status* status);

  /* Not 0: enqueued. */
  TF_Bool (*host_callback)(SP_Device* device, SP_Stream stream, SE_StatusCallbackFn callback_fn,
                           void* callback_arg);
} SP_StreamExecutor;
#define SP_STREAMEXECUTOR_STRUCT_SIZE TF_OFFSET_OF_END(SP_StreamExecutor, host_callback)

typedef struct SE_CreateStreamExecutorParams {
  size_t struct_size;
  void* ext;
  SP_StreamExecutor* stream_executor; /* the host's memory; the plugin fills it */
} SE_CreateStreamExecutorParams;
#define SE_CREATE_STREAM_EXECUTOR_PARAMS_STRUCT_SIZE \
  TF_OFFSET_OF_END(SE_CreateStreamExecutorParams, stream_executor)

/* ---- An allocator of big pieces, which the host cuts (best fit with coalescing) ---- */

typedef struct SP_Allocator {
  size_t struct_size;
  void* ext;                       /* the plugin's */
  TF_Bool supports_unified_memory; /* 0 or 1 */
} SP_Allocator;
#define SP_ALLOCATOR_STRUCT_SIZE TF_OFFSET_OF_END(SP_Allocator, supports_unified_memory)

/* All required, but for unified memory where the allocator does not support it. Each does what the
 * slot of that name in SP_StreamExecutor does. `allocator` is what create_allocator filled. */
typedef struct SP_AllocatorFns {
  size_t struct_size;
  void* ext;
  void (*allocate)(const SP_Device* device, const SP_Allocator* allocator, uint64_t size,
                   int64_t memory_space, SP_DeviceMemoryBase* mem);
  void (*deallocate)(const SP_Device* device, const SP_Allocator* allocator,
                     SP_DeviceMemoryBase* memory);
  void* (*host_memory_allocate)(const SP_Device* device, const SP_Allocator* allocator,
                                uint64_t size);
  void (*host_memory_deallocate)(const SP_Device* device, const SP_Allocator* allocator, void* mem);
  void* (*unified_memory_allocate)(const SP_Device* device, const SP_Allocator* allocator,
                                   uint64_t bytes);
  void (*unified_memory_deallocate)(const SP_Device* device, const SP_Allocator* allocator,
                                    void* location);
  TF_Bool (*get_allocator_stats)(const SP_Device* device, const SP_Allocator* allocator,
                                 SP_AllocatorStats* stats);
  TF_Bool (*device_memory_usage)(const SP_Device* device, const SP_Allocator* allocator,
                                 int64_t* free, int64_t* total);
} SP_AllocatorFns;
#define SP_ALLOCATOR_FNS_STRUCT_SIZE TF_OFFSET_OF_END(SP_AllocatorFns, device_memory_usage)

/* ---- An allocator of its own strategy, which the host uses as it is ---- */

typedef struct SP_CustomAllocator {
  size_t struct_size;
  void* ext; /* the plugin's */
} SP_CustomAllocator;
#define SP_CUSTOM_ALLOCATOR_STRUCT_SIZE TF_OFFSET_OF_END(SP_CustomAllocator, ext)

/* All required. Sizes in bytes; NULL means that no memory was left. */
typedef struct SP_CustomAllocatorFns {
  size_t struct_size;
  void* ext;
  /* `alignment` in bytes, a power of two; the host asks for 64. */
  void* (*allocate_raw)(const SP_Device* device, const SP_CustomAllocator* allocator, size_t size,
                        size_t alignment);
  void (*deallocate_raw)(const SP_Device* device, const SP_CustomAllocator* allocator, void* ptr);
  void* (*host_allocate_raw)(const SP_Device* device, const SP_CustomAllocator* allocator,
                             uint64_t size);
  void (*host_deallocate_raw)(const SP_Device* device, const SP_CustomAllocator* allocator,
                              void* mem);
  TF_Bool (*get_allocator_stats)(const SP_Device* device, const SP_CustomAllocator* allocator,
                                 SP_AllocatorStats* stats);
  TF_Bool (*device_memory_usage)(const SP_Device* device, const SP_CustomAllocator* allocator,
                                 int64_t* free, int64_t* total);
} SP_CustomAllocatorFns;
#define SP_CUSTOM_ALLOCATOR_FNS_STRUCT_SIZE \
  TF_OFFSET_OF_END(SP_CustomAllocatorFns, device_memory_usage)

typedef struct SE_CreateAllocatorParams {
  size_t struct_size;
  void* ext;
  SP_Allocator* allocator;        /* the host's memory; the plugin fills it */
  SP_AllocatorFns* allocator_fns; /* likewise */
} SE_CreateAllocatorParams;
#define SE_CREATE_ALLOCATOR_PARAMS_STRUCT_SIZE \
  TF_OFFSET_OF_END(SE_CreateAllocatorParams, allocator_fns)

typedef struct SE_CreateCustomAllocatorParams {
  size_t struct_size;
  void* ext;
  SP_CustomAllocator* custom_allocator;        /* the host's memory; the plugin fills it */
  SP_CustomAllocatorFns* custom_allocator_fns; /* likewise */
} SE_CreateCustomAllocatorParams;
#define SE_CREATE_CUSTOM_ALLOCATOR_PARAMS_STRUCT_SIZE \
  TF_OFFSET_OF_END(SE_CreateCustomAllocatorParams, custom_allocator_fns)

/* ---- Registration ---- */

typedef struct SP_Platform {
  size_t struct_size;
  void* ext;                   /* the plugin's */
  const char* name;            /* required; a letter, then letters, digits and _ */
  const char* type;            /* required; likewise, as "GPU" */
  size_t visible_device_count; /* how many devices there are */
} SP_Platform;
#define SP_PLATFORM_STRUCT_SIZE TF_OFFSET_OF_END(SP_Platform, visible_device_count)

/* A destroy function releases what the plugin put into the struct, never the struct itself. */
typedef struct SP_PlatformFns {
  size_t struct_size;
  void* ext;
  /* These four are required. */
  void (*create_device)(const SP_Platform* platform, SE_CreateDeviceParams* params,
                        TF_Status* status);
  void (*destroy_device)(const SP_Platform* platform, SP_Device* device);
  void (*create_stream_executor)(const SP_Platform* platform,
                                 SE_CreateStreamExecutorParams* params, TF_Status* status);
  void (*destroy_stream_executor)(const SP_Platform* platform, SP_StreamExecutor* stream_executor);
  /* Both or none. */
  void (*create_timer_fns)(const SP_Platform* platform, SP_TimerFns* timer, TF_Status* status);
  void (*destroy_timer_fns)(const SP_Platform* platform, SP_TimerFns* timer_fns);
  /* One pair of these, or none. Created once for all devices of the platform, when the first of
   * them is used; destroyed when all memory has been freed. */
  void (*create_allocator)(const SP_Platform* platform, SE_CreateAllocatorParams* params,
                           TF_Status* status);
  void (*destroy_allocator)(const SP_Platform* platform, SP_Allocator* allocator,
                            SP_AllocatorFns* allocator_fns);
  void (*create_custom_allocator)(const SP_Platform* platform,
                                  SE_CreateCustomAllocatorParams* params, TF_Status* status);
  void (*destroy_custom_allocator)(const SP_Platform* platform, SP_CustomAllocator* allocator,
                                   SP_CustomAllocatorFns* allocator_fns);
} SP_PlatformFns;
/* As in the RFC it leaves the allocators out; the host reads them nevertheless. */
#define SP_PLATFORM_FNS_STRUCT_SIZE TF_OFFSET_OF_END(SP_PlatformFns, destroy_timer_fns)

typedef struct SE_PlatformRegistrationParams {
  size_t struct_size;
  void* ext;
  int32_t major_version; /* the host's SE_MAJOR, SE_MINOR, SE_PATCH */
  int32_t minor_version;
  int32_t patch_version;
  SP_Platform* platform;        /* the host's memory; the plugin fills it, and keeps no pointer */
  SP_PlatformFns* platform_fns; /* likewise */
  void (*destroy_platform)(SP_Platform* platform);            /* may be NULL */
  void (*destroy_platform_fns)(SP_PlatformFns* platform_fns); /* may be NULL */
} SE_PlatformRegistrationParams;
#define SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE \
  TF_OFFSET_OF_END(SE_PlatformRegistrationParams, destroy_platform_fns)

/* Defined by the plugin. Called once per load, before any other function of the plugin. */
TF_CAPI_EXPORT extern void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status);

#ifdef __cplusplus
}
#endif
#endif
