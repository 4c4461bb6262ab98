/* The device plugin interface: the StreamExecutor C API as TensorFlow 2.9 to 2.21 define it.
 *
 * A plugin is a shared library that defines SE_InitPlugin. SE_* structs are filled by the host,
 * SP_* structs by the plugin, in memory that the host lends and that the plugin must not free.
 *
 * Rules that hold for everything below:
 * - `struct_size` says how far the writer of a struct filled it. The host sets it before the call,
 *   the plugin sets it again to the *_STRUCT_SIZE of the header that it was compiled with.
 * - `ext` is for private data of the side that fills the struct; NULL when unused.
 * - Pointers into plugin memory (names, handles) stay valid until the matching destroy function.
 * - A status arrives as OK. `device` and `platform` are never NULL; streams, events and timers may
 *   be NULL when that is what the plugin returned from create_*.
 * - Functions may run on any thread and in parallel; one stream is fed by one thread at a time.
 * - "optional" slots may be NULL. */
#ifndef MODULAR_TF_DEVICE_H_
#define MODULAR_TF_DEVICE_H_

#ifdef MODULAR_TF_DEVICE_RFC_H_
#error "modular_tf/device_rfc.h declares the same names: a translation unit includes one of the two"
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

/* The version of this API. It never changed: sizes distinguish the dialects. */
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
  void* ext;                 /* the plugin's */
  int32_t ordinal;           /* 0 .. count - 1 */
  void* device_handle;       /* the plugin's; NULL is allowed */
  const char* hardware_name; /* optional; for people */
  const char* device_vendor; /* optional; for people */
  const char* pci_bus_id;    /* optional; "0000:00:02.1" */
} SP_Device;
#define SP_DEVICE_STRUCT_SIZE TF_OFFSET_OF_END(SP_Device, pci_bus_id)

typedef struct SE_CreateDeviceParams {
  size_t struct_size;
  void* ext;
  int32_t ordinal;   /* which device to make */
  SP_Device* device; /* the host's memory, zeroed but for struct_size; the plugin fills it */
} SE_CreateDeviceParams;
#define SE_CREATE_DEVICE_PARAMS_STRUCT_SIZE TF_OFFSET_OF_END(SE_CreateDeviceParams, device)

/* A negative answer means "not known". */
typedef struct SP_DeviceFns {
  size_t struct_size;
  void* ext;
  int32_t (*get_numa_node)(const SP_Device* device);        /* optional */
  int64_t (*get_memory_bandwidth)(const SP_Device* device); /* optional; bytes/s of own memory */
  double (*get_gflops)(const SP_Device* device);            /* optional; 1e9 operations/s */
} SP_DeviceFns;
#define SP_DEVICE_FNS_STRUCT_SIZE TF_OFFSET_OF_END(SP_DeviceFns, get_gflops)

typedef struct SE_CreateDeviceFnsParams {
  size_t struct_size;
  void* ext;
  SP_DeviceFns* device_fns; /* the host's memory; the plugin fills it */
} SE_CreateDeviceFnsParams;
#define SE_CREATE_DEVICE_FNS_PARAMS_STRUCT_SIZE \
  TF_OFFSET_OF_END(SE_CreateDeviceFnsParams, device_fns)

/* What a device of the platform can do. One table for all ordinals. */
typedef struct SP_StreamExecutor {
  size_t struct_size;
  void* ext;

  /* -- memory; sizes in bytes; NULL or a NULL `opaque` means that none was left -- */
  /* `memory_space` is 0. */
  void (*allocate)(const SP_Device* device, uint64_t size, int64_t memory_space,
                   SP_DeviceMemoryBase* mem);
  /* Takes a NULL `opaque`. TensorFlow passes `opaque` only, with size and payload 0. */
  void (*deallocate)(const SP_Device* device, SP_DeviceMemoryBase* memory);
  /* Host memory that asynchronous copies may use. */
  void* (*host_memory_allocate)(const SP_Device* device, uint64_t size);
  void (*host_memory_deallocate)(const SP_Device* device, void* mem);
  /* Both required when the platform says supports_unified_memory, else optional. */
  void* (*unified_memory_allocate)(const SP_Device* device, uint64_t bytes);
  void (*unified_memory_deallocate)(const SP_Device* device, void* location);
  /* 0: not known, and the outputs are untouched. */
  TF_Bool (*get_allocator_stats)(const SP_Device* device, SP_AllocatorStats* stats);
  TF_Bool (*device_memory_usage)(const SP_Device* device, int64_t* free, int64_t* total);

  /* -- streams -- */
  void (*create_stream)(const SP_Device* device, SP_Stream* stream, TF_Status* status);
  void (*destroy_stream)(const SP_Device* device, SP_Stream stream);
  /* Later work of `dependent` waits for what `other` holds now. Does not block. */
  void (*create_stream_dependency)(const SP_Device* device, SP_Stream dependent, SP_Stream other,
                                   TF_Status* status);
  /* The status of the work done so far. Does not block. */
  void (*get_stream_status)(const SP_Device* device, SP_Stream stream, TF_Status* status);

  /* -- events -- */
  void (*create_event)(const SP_Device* device, SP_Event* event, TF_Status* status);
  void (*destroy_event)(const SP_Device* device, SP_Event event);
  SE_EventStatus (*get_event_status)(const SP_Device* device, SP_Event event);
  /* Marks the end of what the stream holds now. An event may be recorded again. */
  void (*record_event)(const SP_Device* device, SP_Stream stream, SP_Event event,
                       TF_Status* status);
  /* Later work of the stream waits for the event. Does not block. */
  void (*wait_for_event)(const SP_Device* const device, SP_Stream stream, SP_Event event,
                         TF_Status* const status);

  /* -- timers; optional since TensorFlow 2.14 -- */
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
  /* Optional: the host records an event and waits for that. */
  void (*block_host_until_done)(const SP_Device* device, SP_Stream stream, TF_Status* status);
  /* Waits for every stream of the device. */
  void (*synchronize_all_activity)(const SP_Device* device, TF_Status* status);

  /* -- fills on a stream; sizes in bytes; since TensorFlow 2.7 -- */
  void (*mem_zero)(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* location,
                   uint64_t size, TF_Status* status);
  void (*memset)(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* location,
                 uint8_t pattern, uint64_t size, TF_Status* status);
  void (*memset32)(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* location,
                   uint32_t pattern, uint64_t size, TF_Status* status);

  /* Runs `callback_fn(callback_arg, status)` on a host thread when the stream gets there. Not 0:
   * enqueued. */
  TF_Bool (*host_callback)(const SP_Device* device, SP_Stream stream,
                           SE_StatusCallbackFn callback_fn, void* callback_arg);
} SP_StreamExecutor;
#define SP_STREAMEXECUTOR_STRUCT_SIZE TF_OFFSET_OF_END(SP_StreamExecutor, host_callback)

typedef struct SE_CreateStreamExecutorParams {
  size_t struct_size;
  void* ext;
  SP_StreamExecutor* stream_executor; /* the host's memory; the plugin fills it */
} SE_CreateStreamExecutorParams;
#define SE_CREATE_STREAM_EXECUTOR_PARAMS_STRUCT_SIZE \
  TF_OFFSET_OF_END(SE_CreateStreamExecutorParams, stream_executor)

typedef struct SP_Platform {
  size_t struct_size;
  void* ext;                       /* the plugin's */
  const char* name;                /* required; [A-Z][A-Z_]*; the plugin's, as long as it lives */
  const char* type;                /* required; [A-Z][A-Z_]*, as "GPU"; likewise */
  TF_Bool supports_unified_memory; /* 0 or 1 */
  TF_Bool use_bfc_allocator;       /* 1: the host cuts few big allocations into small ones */
  TF_Bool force_memory_growth;     /* 1: the host asks for memory as needed, not at once */
} SP_Platform;
#define SP_PLATFORM_STRUCT_SIZE TF_OFFSET_OF_END(SP_Platform, force_memory_growth)

/* A destroy function releases what the plugin put into the struct, never the struct itself. */
typedef struct SP_PlatformFns {
  size_t struct_size;
  void* ext;
  /* Asked again and again; must be cheap and must set the count. */
  void (*get_device_count)(const SP_Platform* platform, int* device_count, TF_Status* status);
  void (*create_device)(const SP_Platform* platform, SE_CreateDeviceParams* params,
                        TF_Status* status);
  void (*destroy_device)(const SP_Platform* platform, SP_Device* device);
  void (*create_device_fns)(const SP_Platform* platform, SE_CreateDeviceFnsParams* params,
                            TF_Status* status);
  void (*destroy_device_fns)(const SP_Platform* platform, SP_DeviceFns* device_fns);
  void (*create_stream_executor)(const SP_Platform* platform,
                                 SE_CreateStreamExecutorParams* params, TF_Status* status);
  void (*destroy_stream_executor)(const SP_Platform* platform, SP_StreamExecutor* stream_executor);
  /* Both optional since TensorFlow 2.14. */
  void (*create_timer_fns)(const SP_Platform* platform, SP_TimerFns* timer, TF_Status* status);
  void (*destroy_timer_fns)(const SP_Platform* platform, SP_TimerFns* timer_fns);
} SP_PlatformFns;
#define SP_PLATFORM_FNS_STRUCT_SIZE TF_OFFSET_OF_END(SP_PlatformFns, destroy_timer_fns)

typedef struct SE_PlatformRegistrationParams {
  size_t struct_size;
  void* ext;
  int32_t major_version; /* the host's SE_MAJOR, SE_MINOR, SE_PATCH */
  int32_t minor_version;
  int32_t patch_version;
  SP_Platform* platform;        /* the host's memory; the plugin fills it, and keeps no pointer */
  SP_PlatformFns* platform_fns; /* likewise */
  void (*destroy_platform)(SP_Platform* platform);             /* required; set by the plugin */
  void (*destroy_platform_fns)(SP_PlatformFns* platform_fns);  /* required; set by the plugin */
} SE_PlatformRegistrationParams;
#define SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE \
  TF_OFFSET_OF_END(SE_PlatformRegistrationParams, destroy_platform_fns)

/* Defined by the plugin. Called once per load, before any other function of the plugin. */
TF_CAPI_EXPORT extern void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status);

#ifdef __cplusplus
}
#endif
#endif
