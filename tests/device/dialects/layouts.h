/* The structs of the device interface in its four generations, declared for these tests alone.
 *
 * LAYOUT chooses one: 2020 (the RFC of 2020-09-08), 205, 207 or 209 (TensorFlow 2.5, 2.7 and
 * 2.9, the last for all after it). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HAS_DEVICE_COUNT (LAYOUT != 2020)
#define HAS_DEVICE_FNS (LAYOUT != 2020)
#define HAS_FILLS (LAYOUT == 207 || LAYOUT == 209)

typedef struct Status Status; /* never touched here */
typedef struct Stream Stream;
typedef struct Event Event;
typedef struct Timer Timer;

typedef struct Platform {
  size_t struct_size;
  void* ext;
  const char* name;
  const char* type;
#if LAYOUT == 2020
  size_t visible_device_count;
#endif
#if LAYOUT != 2020
  unsigned char supports_unified_memory;
#endif
#if HAS_DEVICE_COUNT
  unsigned char use_bfc_allocator;
#endif
#if LAYOUT == 209
  unsigned char force_memory_growth;
#endif
} Platform;

typedef struct Device {
  size_t struct_size;
  void* ext;
  int32_t ordinal;
  void* device_handle;
#if HAS_DEVICE_FNS
  const char* hardware_name;
  const char* device_vendor;
  const char* pci_bus_id;
#endif
} Device;

typedef struct CreateDeviceParams {
  size_t struct_size;
  void* ext;
  int32_t ordinal;
  Device* device;
} CreateDeviceParams;

typedef struct DeviceFns {
  size_t struct_size;
  void* ext;
  int32_t (*get_numa_node)(const Device*);
  int64_t (*get_memory_bandwidth)(const Device*);
  double (*get_gflops)(const Device*);
} DeviceFns;

typedef struct CreateDeviceFnsParams {
  size_t struct_size;
  void* ext;
  DeviceFns* device_fns;
} CreateDeviceFnsParams;

typedef struct TimerFns {
  size_t struct_size;
  void* ext;
  uint64_t (*nanoseconds)(Timer*);
} TimerFns;

typedef struct Memory {
  size_t struct_size;
  void* ext;
  void* opaque;
  uint64_t size;
  uint64_t payload;
} Memory;

typedef struct Stats { /* SP_AllocatorStats, whose ext was forgotten in all layouts */
  size_t struct_size;
  int64_t num_allocs;
} Stats;

typedef void (*Callback)(void*, Status*);

typedef struct Executor {
  size_t struct_size;
  void* ext;
  void (*allocate)(const Device*, uint64_t, int64_t, Memory*);
  void (*deallocate)(const Device*, Memory*);
  void* (*host_memory_allocate)(const Device*, uint64_t);
  void (*host_memory_deallocate)(const Device*, void*);
  void* (*unified_memory_allocate)(const Device*, uint64_t);
  void (*unified_memory_deallocate)(const Device*, void*);
  unsigned char (*get_allocator_stats)(const Device*, void*);
  unsigned char (*device_memory_usage)(const Device*, int64_t*, int64_t*);
  void (*create_stream)(const Device*, Stream**, Status*);
  void (*destroy_stream)(const Device*, Stream*);
  void (*create_stream_dependency)(const Device*, Stream*, Stream*, Status*);
  void (*get_stream_status)(const Device*, Stream*, Status*);
  void (*create_event)(const Device*, Event**, Status*);
  void (*destroy_event)(const Device*, Event*);
  int (*get_event_status)(const Device*, Event*);
  void (*record_event)(const Device*, Stream*, Event*, Status*);
  void (*wait_for_event)(const Device*, Stream*, Event*, Status*);
  void (*create_timer)(const Device*, Timer**, Status*);
  void (*destroy_timer)(const Device*, Timer*);
  void (*start_timer)(const Device*, Stream*, Timer*, Status*);
  void (*stop_timer)(const Device*, Stream*, Timer*, Status*);
  void (*memcpy_dtoh)(const Device*, Stream*, void*, const Memory*, uint64_t, Status*);
  void (*memcpy_htod)(const Device*, Stream*, Memory*, const void*, uint64_t, Status*);
  void (*memcpy_dtod)(const Device*, Stream*, Memory*, const Memory*, uint64_t, Status*);
  void (*sync_memcpy_dtoh)(const Device*, void*, const Memory*, uint64_t, Status*);
  void (*sync_memcpy_htod)(const Device*, Memory*, const void*, uint64_t, Status*);
  void (*sync_memcpy_dtod)(const Device*, Memory*, const Memory*, uint64_t, Status*);
  void (*block_host_for_event)(const Device*, Event*, Status*);
  void (*block_host_until_done)(const Device*, Stream*, Status*);
  void (*synchronize_all_activity)(const Device*, Status*);
#if HAS_FILLS
  void (*mem_zero)(const Device*, Stream*, Memory*, uint64_t, Status*);
  void (*memset)(const Device*, Stream*, Memory*, uint8_t, uint64_t, Status*);
  void (*memset32)(const Device*, Stream*, Memory*, uint32_t, uint64_t, Status*);
#endif
  unsigned char (*host_callback)(const Device*, Stream*, Callback, void*);
} Executor;

typedef struct CreateExecutorParams {
  size_t struct_size;
  void* ext;
  Executor* executor;
} CreateExecutorParams;

typedef struct PlatformFns {
  size_t struct_size;
  void* ext;
#if HAS_DEVICE_COUNT
  void (*get_device_count)(const Platform*, int*, Status*);
#endif
  void (*create_device)(const Platform*, CreateDeviceParams*, Status*);
  void (*destroy_device)(const Platform*, Device*);
#if HAS_DEVICE_FNS
  void (*create_device_fns)(const Platform*, CreateDeviceFnsParams*, Status*);
  void (*destroy_device_fns)(const Platform*, DeviceFns*);
#endif
  void (*create_stream_executor)(const Platform*, CreateExecutorParams*, Status*);
  void (*destroy_stream_executor)(const Platform*, Executor*);
  void (*create_timer_fns)(const Platform*, TimerFns*, Status*);
  void (*destroy_timer_fns)(const Platform*, TimerFns*);
#if LAYOUT == 2020
  void (*create_allocator)(const Platform*, void*, Status*);
  void (*destroy_allocator)(const Platform*, void*, void*);
  void (*create_custom_allocator)(const Platform*, void*, Status*);
  void (*destroy_custom_allocator)(const Platform*, void*, void*);
#endif
} PlatformFns;

typedef struct Registration {
  size_t struct_size;
  void* ext;
  int32_t major_version, minor_version, patch_version;
  Platform* platform;
  PlatformFns* platform_fns;
  void (*destroy_platform)(Platform*);
  void (*destroy_platform_fns)(PlatformFns*);
} Registration;

/* What each header's *_STRUCT_SIZE says: where the last field ends, but for the RFC's functions,
 * whose macro was forgotten when the allocators came. */
#define END_OF(type, field) (offsetof(type, field) + sizeof(((type*)0)->field))
#if LAYOUT == 2020
enum { PLATFORM_SIZE = 40, FNS_SIZE = 64, EXECUTOR_SIZE = 264, DEVICE_SIZE = 32 };
#elif LAYOUT == 205
enum { PLATFORM_SIZE = 34, FNS_SIZE = 88, EXECUTOR_SIZE = 264, DEVICE_SIZE = 56 };
#elif LAYOUT == 207
enum { PLATFORM_SIZE = 34, FNS_SIZE = 88, EXECUTOR_SIZE = 288, DEVICE_SIZE = 56 };
#elif LAYOUT == 209
enum { PLATFORM_SIZE = 35, FNS_SIZE = 88, EXECUTOR_SIZE = 288, DEVICE_SIZE = 56 };
#else
#error "LAYOUT is 2020, 205, 207 or 209"
#endif
_Static_assert(EXECUTOR_SIZE == END_OF(Executor, host_callback), "SP_StreamExecutor");
_Static_assert(DEVICE_SIZE == sizeof(Device), "SP_Device");
#if LAYOUT == 2020
_Static_assert(PLATFORM_SIZE == END_OF(Platform, visible_device_count), "SP_Platform");
_Static_assert(FNS_SIZE == END_OF(PlatformFns, destroy_timer_fns), "SP_PlatformFns");
_Static_assert(sizeof(PlatformFns) == 96, "SP_PlatformFns");
#else
_Static_assert(FNS_SIZE == sizeof(PlatformFns), "SP_PlatformFns");
#endif
