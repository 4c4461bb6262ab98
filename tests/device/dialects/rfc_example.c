/* What the usage example of the RFC of 2020-09-08 does, in its layout: SE_InitPlugin assigns a
 * fresh struct to its parameters, and so loses the pointers that it writes through next. */
#include "layouts.h"

#define VISIBLE __attribute__((visibility("default")))

enum { VISIBLE_DEVICES = 2 };

static int handle;

static void create_device(const Platform* platform, CreateDeviceParams* params, Status* status) {
  (void)platform, (void)status;
  params->device->device_handle = &handle;
}
static void destroy_device(const Platform* platform, Device* device) {
  (void)platform, (void)device;
}
static void create_stream_executor(const Platform* platform, CreateExecutorParams* params,
                                   Status* status) {
  (void)platform, (void)params, (void)status;
}
static void destroy_stream_executor(const Platform* platform, Executor* executor) {
  (void)platform, (void)executor;
}
static void create_timer_fns(const Platform* platform, TimerFns* fns, Status* status) {
  (void)platform, (void)fns, (void)status;
}
static void destroy_timer_fns(const Platform* platform, TimerFns* fns) {
  (void)platform, (void)fns;
}
static void create_allocator(const Platform* platform, void* params, Status* status) {
  (void)platform, (void)params, (void)status;
}
static void destroy_allocator(const Platform* platform, void* allocator, void* fns) {
  (void)platform, (void)allocator, (void)fns;
}

/* Volatile: a compiler that followed the NULL would leave out the rest, or trap instead. */
VISIBLE void SE_InitPlugin(volatile Registration* params, Status* status) {
  (void)status;
  *params = (Registration){.struct_size = END_OF(Registration, destroy_platform_fns)};
  params->platform->name = "MyDevice";
  params->platform->type = "GPU";
  params->platform->visible_device_count = VISIBLE_DEVICES;
  params->platform_fns->create_device = create_device;
  params->platform_fns->destroy_device = destroy_device;
  params->platform_fns->create_stream_executor = create_stream_executor;
  params->platform_fns->destroy_stream_executor = destroy_stream_executor;
  params->platform_fns->create_timer_fns = create_timer_fns;
  params->platform_fns->destroy_timer_fns = destroy_timer_fns;
  params->platform_fns->create_allocator = create_allocator;
  params->platform_fns->destroy_allocator = destroy_allocator;
}
