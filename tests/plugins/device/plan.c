#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "good_device.h"
#include "ledger.h"

device_plan plan;

/* ---- Platform functions: each copies its part of the plan ---- */

static void get_device_count(const SP_Platform* platform, int* count, TF_Status* status) {
  (void)platform;
  *count = plan.device_count;
  succeed(status);
}

static void create_device(const SP_Platform* platform, SE_CreateDeviceParams* params,
                          TF_Status* status) {
  (void)platform;
  int32_t ordinal = params->ordinal;
  *params->device = plan.device;
  params->device->ordinal = ordinal;
  params->device->device_handle = &plan.device_count + ordinal;
  ledger_begin(LEDGER_DEVICES);
  succeed(status);
}

static void destroy_device(const SP_Platform* platform, SP_Device* device) {
  (void)platform, (void)device;
  ledger_end(LEDGER_DEVICES);
}

static void create_device_fns(const SP_Platform* platform, SE_CreateDeviceFnsParams* params,
                              TF_Status* status) {
  (void)platform;
  *params->device_fns = plan.device_fns;
  ledger_begin(LEDGER_DEVICE_FNS);
  succeed(status);
}

static void destroy_device_fns(const SP_Platform* platform, SP_DeviceFns* fns) {
  (void)platform, (void)fns;
  ledger_end(LEDGER_DEVICE_FNS);
}

static void create_stream_executor(const SP_Platform* platform,
                                   SE_CreateStreamExecutorParams* params, TF_Status* status) {
  (void)platform;
  *params->stream_executor = plan.executor;
  ledger_begin(LEDGER_EXECUTORS);
  succeed(status);
}

static void destroy_stream_executor(const SP_Platform* platform, SP_StreamExecutor* executor) {
  (void)platform, (void)executor;
  ledger_end(LEDGER_EXECUTORS);
}

static void create_timer_fns(const SP_Platform* platform, SP_TimerFns* fns, TF_Status* status) {
  (void)platform;
  *fns = plan.timer_fns;
  ledger_begin(LEDGER_TIMER_FNS);
  succeed(status);
}

static void destroy_timer_fns(const SP_Platform* platform, SP_TimerFns* fns) {
  (void)platform, (void)fns;
  ledger_end(LEDGER_TIMER_FNS);
}

static void destroy_platform(SP_Platform* platform) {
  (void)platform;
  ledger_end(LEDGER_PLATFORMS);
}

static void destroy_platform_fns(SP_PlatformFns* fns) {
  (void)fns;
  ledger_end(LEDGER_PLATFORM_FNS);
}

/* ---- Device functions ---- */

static int32_t get_numa_node(const SP_Device* device) { return device->ordinal; }

static int64_t get_memory_bandwidth(const SP_Device* device) {
  return 1000000000 * (device->ordinal + 1);
}

static double get_gflops(const SP_Device* device) { return 2.5 * (device->ordinal + 1); }

/* ---- The plan ---- */

static const SP_PlatformFns good_platform_fns = {
    .struct_size = SP_PLATFORM_FNS_STRUCT_SIZE,
    .get_device_count = get_device_count,
    .create_device = create_device,
    .destroy_device = destroy_device,
    .create_device_fns = create_device_fns,
    .destroy_device_fns = destroy_device_fns,
    .create_stream_executor = create_stream_executor,
    .destroy_stream_executor = destroy_stream_executor,
    .create_timer_fns = create_timer_fns,
    .destroy_timer_fns = destroy_timer_fns,
};

void plan_good_device(const char* type, const char* platform) {
  plan = (device_plan){.device_count = 2};
  plan.params.struct_size = SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE;
  plan.params.patch_version = SE_PATCH;
  plan.params.destroy_platform = destroy_platform;
  plan.params.destroy_platform_fns = destroy_platform_fns;
  plan.platform = (SP_Platform){
      .struct_size = SP_PLATFORM_STRUCT_SIZE, .name = platform, .type = type};
  plan.platform_fns = good_platform_fns;
  plan.device_fns = (SP_DeviceFns){SP_DEVICE_FNS_STRUCT_SIZE, NULL, get_numa_node,
                                   get_memory_bandwidth, get_gflops};
  plan.executor.struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE;
  fill_memory_slots(&plan.executor);
  fill_stream_slots(&plan.executor);
  plan.timer_fns = (SP_TimerFns){SP_TIMER_FNS_STRUCT_SIZE, NULL, timer_nanoseconds};
  plan.device = (SP_Device){.struct_size = SP_DEVICE_STRUCT_SIZE,
                            .hardware_name = "Fixture 1000",
                            .device_vendor = "Fixtures Inc.",
                            .pci_bus_id = "0000:00:02.1"};
}

static const variant* find_variant(const char* name) {
  static const variant* const all[] = {registration_variants, dialect_variants, behaviour_variants};
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i)
    for (const variant* found = all[i]; found->name != NULL; ++found)
      if (strcmp(found->name, name) == 0) return found;
  return NULL;
}

void apply_variant(const char* name) {
  const variant* found = find_variant(name);
  if (found != NULL) {
    found->apply();
  } else if (strcmp(name, "good") != 0 && !clear_slot(name)) {
    fprintf(stderr, "there is no fixture variant named %s\n", name);
    abort();
  }
}

void register_plan(SE_PlatformRegistrationParams* params, TF_Status* status) {
  if (plan.failure != TF_OK) {
    TF_SetStatus(status, plan.failure, "the driver is too old");
    return;
  }
  params->struct_size = plan.params.struct_size;
  params->patch_version = plan.params.patch_version;
  params->destroy_platform = plan.params.destroy_platform;
  params->destroy_platform_fns = plan.params.destroy_platform_fns;
  if (plan.keeps_platform_size) plan.platform.struct_size = params->platform->struct_size;
  if (plan.keeps_fns_size) plan.platform_fns.struct_size = params->platform_fns->struct_size;
  *params->platform = plan.platform;
  *params->platform_fns = plan.platform_fns;
  ledger_begin(LEDGER_PLATFORMS);
  ledger_begin(LEDGER_PLATFORM_FNS);
  succeed(status);
  if (plan.registered != NULL) plan.registered(params);
}
