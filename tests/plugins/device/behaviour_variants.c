/* Variants whose functions misbehave when the host calls them. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "good_device.h"
#include "ledger.h"
#include "plan.h"

#define CHANGE(function, statement) \
  static void function(void) { statement; }

/* ---- Counting and creating ---- */

CHANGE(no_devices, plan.device_count = 0)
CHANGE(many_devices, plan.device_count = 5)
CHANGE(negative_count, plan.device_count = -3)
CHANGE(huge_count, plan.device_count = 1 << 30)

static void count_fails(const SP_Platform* platform, int* count, TF_Status* status) {
  (void)platform;
  *count = 7;
  TF_SetStatus(status, TF_UNAVAILABLE, "the driver does not answer");
}
CHANGE(failing_count, plan.platform_fns.get_device_count = count_fails)

static void count_nothing(const SP_Platform* platform, int* count, TF_Status* status) {
  (void)platform, (void)count, (void)status;
}
CHANGE(untouched_count, plan.platform_fns.get_device_count = count_nothing)

static void device_fails(const SP_Platform* platform, SE_CreateDeviceParams* params,
                         TF_Status* status) {
  (void)platform, (void)params;
  TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "the device is in use");
}
CHANGE(failing_device, plan.platform_fns.create_device = device_fails)

static void (*create_good_device)(const SP_Platform*, SE_CreateDeviceParams*, TF_Status*);

static void second_device_fails(const SP_Platform* platform, SE_CreateDeviceParams* params,
                                TF_Status* status) {
  (params->ordinal == 1 ? device_fails : create_good_device)(platform, params, status);
}
CHANGE(failing_second_device, create_good_device = plan.platform_fns.create_device;
       plan.platform_fns.create_device = second_device_fails)

static void device_fns_fail(const SP_Platform* platform, SE_CreateDeviceFnsParams* params,
                            TF_Status* status) {
  (void)platform, (void)params;
  TF_SetStatus(status, TF_INTERNAL, "no device functions today");
}
CHANGE(failing_device_fns, plan.platform_fns.create_device_fns = device_fns_fail)

static void executor_fails(const SP_Platform* platform, SE_CreateStreamExecutorParams* params,
                           TF_Status* status) {
  (void)platform, (void)params;
  TF_SetStatus(status, TF_INTERNAL, "no executor today");
}
CHANGE(failing_executor, plan.platform_fns.create_stream_executor = executor_fails)

/* ---- Details ---- */

CHANGE(no_strings, plan.device.hardware_name = NULL; plan.device.device_vendor = NULL;
       plan.device.pci_bus_id = NULL)
CHANGE(unreadable_strings, plan.device.hardware_name = (const char*)8)

static int32_t unknown_node(const SP_Device* device) {
  (void)device;
  return -1;
}
static int64_t unknown_bandwidth(const SP_Device* device) {
  (void)device;
  return -1;
}
static double unknown_gflops(const SP_Device* device) {
  (void)device;
  return -1;
}
CHANGE(unknown_details, plan.device_fns.get_numa_node = unknown_node;
       plan.device_fns.get_memory_bandwidth = unknown_bandwidth;
       plan.device_fns.get_gflops = unknown_gflops)

/* In throw.cc, which only the variants that throw are linked with. */
extern void fixture_throw(const char* what) __attribute__((weak, visibility("hidden")));

static int32_t throwing_node(const SP_Device* device) {
  (void)device;
  if (fixture_throw != NULL) fixture_throw("thrown by get_numa_node");
  return 0;
}
CHANGE(details_throw, plan.device_fns.get_numa_node = throwing_node)

static void throwing_destroy(SP_Platform* platform) {
  (void)platform;
  if (fixture_throw != NULL) fixture_throw("thrown by destroy_platform");
}
CHANGE(destroy_throws, plan.params.destroy_platform = throwing_destroy)

/* ---- Memory ---- */

static void allocate_nothing(const SP_Device* device, uint64_t size, int64_t space,
                             SP_DeviceMemoryBase* memory) {
  (void)device, (void)size, (void)space;
  memory->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
  memory->opaque = NULL;
}
CHANGE(allocate_null, plan.executor.allocate = allocate_nothing)

static TF_Bool usage_unknown(const SP_Device* device, int64_t* free, int64_t* total) {
  (void)device, (void)free, (void)total;
  return 0;
}
CHANGE(unknown_usage, plan.executor.device_memory_usage = usage_unknown)

static TF_Bool stats_unknown(const SP_Device* device, SP_AllocatorStats* stats) {
  (void)device, (void)stats;
  return 0;
}
CHANGE(unknown_stats, plan.executor.get_allocator_stats = stats_unknown)

static void copy_fails(const SP_Device* device, SP_Stream stream, void* target,
                       const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  (void)device, (void)stream, (void)target, (void)source, (void)size;
  TF_SetStatus(status, TF_INTERNAL, "a bus error");
}

static void copy_now_fails(const SP_Device* device, void* target,
                           const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  copy_fails(device, NULL, target, source, size, status);
}
CHANGE(copies_fail, plan.executor.memcpy_dtoh = copy_fails;
       plan.executor.sync_memcpy_dtoh = copy_now_fails)

static void copy_hangs(const SP_Device* device, SP_Stream stream, void* target,
                       const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  (void)device, (void)stream, (void)target, (void)source, (void)size, (void)status;
  for (;;) pause();
}

static void copy_now_hangs(const SP_Device* device, void* target,
                           const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  copy_hangs(device, NULL, target, source, size, status);
}
CHANGE(copies_hang, plan.executor.memcpy_dtoh = copy_hangs;
       plan.executor.sync_memcpy_dtoh = copy_now_hangs)

static void copy_crashes(const SP_Device* device, SP_Stream stream, void* target,
                         const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  (void)device, (void)stream, (void)target, (void)source, (void)size, (void)status;
  raise(SIGSEGV);
}

static void copy_now_crashes(const SP_Device* device, void* target,
                             const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  copy_crashes(device, NULL, target, source, size, status);
}
CHANGE(copies_crash, plan.executor.memcpy_dtoh = copy_crashes;
       plan.executor.sync_memcpy_dtoh = copy_now_crashes)

/* ---- Streams and events ---- */

static void stream_fails(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  (void)device, (void)stream;
  TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no stream is left");
}
CHANGE(failing_stream, plan.executor.create_stream = stream_fails)

static void stream_in_error(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  (void)device, (void)stream;
  TF_SetStatus(status, TF_DATA_LOSS, "an earlier kernel failed");
}
CHANGE(bad_stream_status, plan.executor.get_stream_status = stream_in_error)

static SE_EventStatus event_in_error(const SP_Device* device, SP_Event event) {
  (void)device, (void)event;
  return SE_EVENT_ERROR;
}
CHANGE(event_error, plan.executor.get_event_status = event_in_error)

static SE_EventStatus event_unheard_of(const SP_Device* device, SP_Event event) {
  (void)device, (void)event;
  return (SE_EventStatus)77;
}
CHANGE(event_unknown, plan.executor.get_event_status = event_unheard_of)

static TF_Bool refuse_callback(const SP_Device* device, SP_Stream stream,
                               SE_StatusCallbackFn function, void* argument) {
  (void)device, (void)stream, (void)function, (void)argument;
  return 0;
}
CHANGE(callback_refused, plan.executor.host_callback = refuse_callback)

/* Handles are the plugin's own business, and NULL is one: as the community's sample does. */
static void null_stream(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  (void)device, (void)status;
  *stream = NULL;
}
static void null_event(const SP_Device* device, SP_Event* event, TF_Status* status) {
  (void)device, (void)status;
  *event = NULL;
}
static void ignore_stream(const SP_Device* device, SP_Stream stream) { (void)device, (void)stream; }
static void ignore_event(const SP_Device* device, SP_Event event) { (void)device, (void)event; }
static void record_nothing(const SP_Device* device, SP_Stream stream, SP_Event event,
                           TF_Status* status) {
  (void)device, (void)stream, (void)event, (void)status;
}
static void wait_for_nothing(const SP_Device* device, SP_Event event, TF_Status* status) {
  (void)device, (void)event, (void)status;
}
static SE_EventStatus always_complete(const SP_Device* device, SP_Event event) {
  (void)device, (void)event;
  return SE_EVENT_COMPLETE;
}
CHANGE(null_handles, plan.executor.create_stream = null_stream;
       plan.executor.destroy_stream = ignore_stream; plan.executor.create_event = null_event;
       plan.executor.destroy_event = ignore_event; plan.executor.record_event = record_nothing;
       plan.executor.block_host_for_event = wait_for_nothing;
       plan.executor.get_event_status = always_complete)

const variant behaviour_variants[] = {
    {"count-0", no_devices},
    {"count-5", many_devices},
    {"count-negative", negative_count},
    {"count-huge", huge_count},
    {"count-fails", failing_count},
    {"count-untouched", untouched_count},
    {"create-device-fails", failing_device},
    {"create-second-device-fails", failing_second_device},
    {"create-device-fns-fails", failing_device_fns},
    {"create-executor-fails", failing_executor},
    {"details-null", no_strings},
    {"details-unreadable", unreadable_strings},
    {"details-unknown", unknown_details},
    {"details-throw", details_throw},
    {"destroy-throws", destroy_throws},
    {"allocate-null", allocate_null},
    {"memory-usage-unknown", unknown_usage},
    {"allocator-stats-unknown", unknown_stats},
    {"copies-crash", copies_crash},
    {"copies-fail", copies_fail},
    {"copies-hang", copies_hang},
    {"create-stream-fails", failing_stream},
    {"stream-status-bad", bad_stream_status},
    {"event-error", event_error},
    {"event-unknown", event_unknown},
    {"callback-refused", callback_refused},
    {"handles-null", null_handles},
    {NULL, NULL},
};
