/* One device plugin for all generations of the interface: two devices in the host's memory.
 * variant.h says what can differ. No status is touched unless it must fail. */
#include <string.h>

#include "variant.h"

enum { DEVICES = 2 };

/* ---- What the host called, and what it showed ---- */

static char calls[4096];

void called(const char* name) {
  if (strlen(calls) + strlen(name) + 2 > sizeof(calls)) return;
  if (calls[0] != '\0') strcat(calls, " ");
  strcat(calls, name);
}

VISIBLE const char* dialect_calls(void) { return calls; }
VISIBLE void dialect_forget_calls(void) { calls[0] = '\0'; }

/* The platform that comes back must be the plugin's own, in its own layout. */
static void check_platform(const Platform* platform) {
  int same = strcmp(platform->name, PLATFORM_NAME) == 0;
#if LAYOUT == 2020
  same = same && platform->visible_device_count == DEVICES_SAID;
#else
  same = same && platform->use_bfc_allocator == 1;
#endif
#if LAYOUT == 205
  same = same && platform->supports_unified_memory == 1;
#endif
  if (!same) called("STRANGE_PLATFORM");
}

/* What the host lends has its size, and NULL where the plugin may put data of its own. */
static void check_params(int are_right) {
  if (!are_right) called("STRANGE_PARAMS");
}

void TF_SetStatus(Status* status, int code, const char* message); /* the host's */

/* What is created first fails. */
static int first_fails(Status* status) {
#if FIRST_FAILS
  TF_SetStatus(status, FIRST_FAILS, "no licence for this");
#endif
  (void)status;
  return FIRST_FAILS;
}

/* ---- Devices ---- */

static Device devices[DEVICES];

void* device_handle(int32_t ordinal) { return &devices[ordinal]; }

VISIBLE void fns_create_device(const Platform* platform, CreateDeviceParams* params,
                               Status* status) {
  called("create_device");
  check_platform(platform);
  check_params(params->ext == NULL && params->struct_size == sizeof(*params) &&
               params->device->ext == NULL && params->device->struct_size == DEVICE_SIZE);
  if (params->ordinal < 0 || params->ordinal >= DEVICES ||
      params->ordinal >= (int64_t)(DEVICES_SAID)) {
    TF_SetStatus(status, 3, "there is no such device"); /* invalid argument */
    return;
  }
  Device* own = &devices[params->ordinal];
  *own = (Device){.struct_size = SIZES ? DEVICE_SIZE : 0,
                  .ordinal = params->ordinal,
#if HAS_DEVICE_FNS
                  .hardware_name = "Old 1000",
                  .device_vendor = "Nobody",
                  .pci_bus_id = "0000:00:02.1",
#endif
                  .device_handle = own};
  DELIVER(*own, params->device);
}
VISIBLE void fns_destroy_device(const Platform* platform, Device* device) {
  check_platform(platform);
  called(device->device_handle == &devices[device->ordinal] ? "destroy_device" : "STRANGE_DEVICE");
}

#if HAS_DEVICE_COUNT
VISIBLE void fns_get_device_count(const Platform* platform, int* count, Status* status) {
  (void)status;
  called("get_device_count");
  check_platform(platform);
  *count = DEVICES_SAID;
}
#endif

#if HAS_DEVICE_FNS
static int32_t get_numa_node(const Device* device) { return device->ordinal; }
static int64_t get_memory_bandwidth(const Device* device) { return 1000000 + device->ordinal; }
static double get_gflops(const Device* device) { return 0.5 + device->ordinal; }

static DeviceFns device_fns = {SIZES ? sizeof(DeviceFns) : 0, NULL, get_numa_node,
                               get_memory_bandwidth, get_gflops};

VISIBLE void fns_create_device_fns(const Platform* platform, CreateDeviceFnsParams* params,
                                   Status* status) {
  called("create_device_fns");
  check_platform(platform);
  if (first_fails(status)) return;
  DELIVER(device_fns, params->device_fns);
}
VISIBLE void fns_destroy_device_fns(const Platform* platform, DeviceFns* fns) {
  check_platform(platform);
  called(fns->get_gflops == get_gflops ? "destroy_device_fns" : "STRANGE_DEVICE_FNS");
}
#endif

VISIBLE void fns_create_stream_executor(const Platform* platform, CreateExecutorParams* params,
                                        Status* status) {
  called("create_stream_executor");
  check_platform(platform);
  check_params(params->ext == NULL && params->struct_size == sizeof(*params) &&
               params->executor->ext == NULL && params->executor->struct_size != 0);
  if (LAYOUT == 2020 && first_fails(status)) return;
  DELIVER(executor, params->executor);
}
VISIBLE void fns_destroy_stream_executor(const Platform* platform, Executor* done) {
  check_platform(platform);
  int same = done->host_callback == executor.host_callback;
  called(same ? "destroy_stream_executor" : "STRANGE_EXECUTOR");
}

VISIBLE void fns_create_timer_fns(const Platform* platform, TimerFns* fns, Status* status) {
  (void)platform, (void)status;
  check_params(fns->ext == NULL && fns->struct_size == sizeof(*fns));
  called("create_timer_fns");
  fns->nanoseconds = timer_nanoseconds;
}
VISIBLE void fns_destroy_timer_fns(const Platform* platform, TimerFns* fns) {
  (void)platform, (void)fns;
}

/* ---- Registration ---- */

static Platform own_platform = {
    .struct_size = SIZES ? PLATFORM_SAYS : 0,
    .name = PLATFORM_NAME,
    .type = TYPE_NAME,
#if LAYOUT == 2020
    .visible_device_count = (size_t)(DEVICES_SAID),
#endif
#if LAYOUT != 2020
    .supports_unified_memory = 1,
#endif
#if HAS_DEVICE_COUNT
    .use_bfc_allocator = 1,
#endif
#if LAYOUT == 209
    .force_memory_growth = 1,
#endif
};

static PlatformFns own_platform_fns = {
    .struct_size = SIZES ? FNS_SAYS : 0,
#if HAS_DEVICE_COUNT
    .get_device_count = fns_get_device_count,
#endif
    .create_device = fns_create_device,
    .destroy_device = fns_destroy_device,
#if HAS_DEVICE_FNS
    .create_device_fns = fns_create_device_fns,
    .destroy_device_fns = fns_destroy_device_fns,
#endif
    .create_stream_executor = fns_create_stream_executor,
    .destroy_stream_executor = fns_destroy_stream_executor,
#if TIMERS
    .create_timer_fns = fns_create_timer_fns,
    .destroy_timer_fns = fns_destroy_timer_fns,
#endif
};

static void destroy_platform(Platform* platform) {
  check_platform(platform);
  called("destroy_platform");
}
static void destroy_platform_fns(PlatformFns* fns) {
  called(fns->destroy_device == fns_destroy_device ? "destroy_platform_fns" : "STRANGE_FNS");
}

static void choose_allocator(void) {
#if LAYOUT == 2020
  if (ALLOCATOR == PLAIN || ALLOCATOR == BOTH || ALLOCATOR == HALF)
    own_platform_fns.create_allocator = fns_create_allocator;
  if (ALLOCATOR == PLAIN || ALLOCATOR == BOTH)
    own_platform_fns.destroy_allocator = fns_destroy_allocator;
  if (ALLOCATOR == CUSTOM || ALLOCATOR == BOTH) {
    own_platform_fns.create_custom_allocator = fns_create_custom_allocator;
    own_platform_fns.destroy_custom_allocator = fns_destroy_custom_allocator;
  }
#endif
}

static void spoil_slots(void) {
  void* data = calls;
  (void)data;
#ifdef NOT_CODE
  memcpy(&own_platform_fns.NOT_CODE, &data, sizeof(data));
#endif
#ifdef NOT_CODE_EXECUTOR
  memcpy(&executor.NOT_CODE_EXECUTOR, &data, sizeof(data));
#endif
}

#if KERNELS
// Functions of graphs, which no host of kernels alone has.
void* TF_NewFunctionLibraryDefinition(const void* graph, Status* status);
void TF_DeleteFunctionLibraryDefinition(void* library);
void TF_LookUpOpDef(void* library, const char* name, void* buffer, Status* status);

VISIBLE void TF_InitKernel(void) {
  called("init_kernel");
  void* library = TF_NewFunctionLibraryDefinition(0, 0);
  TF_LookUpOpDef(library, "Dialect", 0, 0);
  TF_DeleteFunctionLibraryDefinition(library);
}
#endif

VISIBLE void SE_InitPlugin(Registration* params, Status* status) {
  (void)status;
  called("init");
#if KERNELS
  called(TF_NewFunctionLibraryDefinition(params, status) == 0 ? "absent" : "present");
#endif
  check_params(params->struct_size == sizeof(*params) && params->ext == NULL &&
               params->major_version == 0 && params->minor_version == 0 &&
               params->patch_version == 1 && params->platform->ext == NULL &&
               params->platform->struct_size != 0 && params->platform_fns->ext == NULL &&
               params->platform_fns->struct_size != 0);
  choose_allocator();
  spoil_slots();
  Platform* platform = params->platform;
  PlatformFns* fns = params->platform_fns;
  if (FORM == SAVED) memset(params, 0, sizeof(*params));
  DELIVER(own_platform, platform);
  DELIVER(own_platform_fns, fns);
  if (FORM == OWN) {
    params->platform = platform;
    params->platform_fns = fns;
  }
  params->destroy_platform = DESTROYS ? destroy_platform : NULL;
  params->destroy_platform_fns = DESTROYS ? destroy_platform_fns : NULL;
}
