/* Variants that differ in what they register: names, sizes, versions, pointers. */
#include <string.h>

#include "plan.h"

#define CHANGE(function, statement) \
  static void function(void) { statement; }

CHANGE(init_fails, plan.failure = TF_UNAVAILABLE)
CHANGE(no_destroy_platform, plan.params.destroy_platform = NULL)
CHANGE(no_destroy_platform_fns, plan.params.destroy_platform_fns = NULL)
CHANGE(other_version, plan.params.patch_version = 99)

CHANGE(params_size_0, plan.params.struct_size = 0)
CHANGE(platform_size_0, plan.platform.struct_size = 0)
CHANGE(fns_size_0, plan.platform_fns.struct_size = 0)
CHANGE(device_fns_size_0, plan.device_fns.struct_size = 0)
CHANGE(executor_size_0, plan.executor.struct_size = 0)
CHANGE(device_size_0, plan.device.struct_size = 0)
CHANGE(platform_larger, plan.platform.struct_size = 512)
CHANGE(executor_larger, plan.executor.struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE + 8)

CHANGE(null_name, plan.platform.name = NULL)
CHANGE(null_type, plan.platform.type = NULL)
CHANGE(lower_case_name, plan.platform.name = "fixture_chip")
CHANGE(name_with_digit, plan.platform.name = "CHIP1")
CHANGE(name_of_host, plan.platform.name = "HOST")
CHANGE(lower_case_type, plan.platform.type = "fixture")
CHANGE(type_with_digit, plan.platform.type = "NPU1")
CHANGE(type_with_dash, plan.platform.type = "NPU-X")
CHANGE(type_with_colon, plan.platform.type = "NPU:0")
CHANGE(empty_type, plan.platform.type = "")
CHANGE(name_not_readable, plan.platform.name = (const char*)8)
CHANGE(flag_2, plan.platform.use_bfc_allocator = 2)

CHANGE(no_timers, plan.executor.create_timer = NULL; plan.executor.destroy_timer = NULL;
       plan.executor.start_timer = NULL; plan.executor.stop_timer = NULL;
       plan.platform_fns.create_timer_fns = NULL; plan.platform_fns.destroy_timer_fns = NULL)
CHANGE(no_unified_memory, plan.platform.supports_unified_memory = 1;
       plan.executor.unified_memory_allocate = NULL;
       plan.executor.unified_memory_deallocate = NULL)
CHANGE(unified_memory, plan.platform.supports_unified_memory = 1)
CHANGE(bfc_allocator, plan.platform.use_bfc_allocator = 1)
CHANGE(no_device_fns, plan.device_fns.get_numa_node = NULL;
       plan.device_fns.get_memory_bandwidth = NULL; plan.device_fns.get_gflops = NULL)

static void slot_not_code(void) {
  void* data = &plan;
  memcpy(&plan.executor.allocate, &data, sizeof(data));
}

/* As most real plugins do: the size of SP_PlatformFns stays what the host put there. */
CHANGE(fns_size_unwritten, plan.keeps_fns_size = 1)

/* Structs of its own instead of the host's, as the RFC's text allows and TensorFlow does not. */
static void replace_structs(SE_PlatformRegistrationParams* params) {
  params->platform = &plan.platform;
  params->platform_fns = &plan.platform_fns;
}
CHANGE(structs_replaced, plan.registered = replace_structs)

static void forget_structs(SE_PlatformRegistrationParams* params) {
  params->platform = NULL;
  params->platform_fns = NULL;
}
CHANGE(structs_forgotten, plan.registered = forget_structs)

static void wild_structs(SE_PlatformRegistrationParams* params) {
  params->platform = (SP_Platform*)64;
}
CHANGE(structs_unreadable, plan.registered = wild_structs)

const variant registration_variants[] = {
    {"init-fails", init_fails},
    {"destroy-platform-null", no_destroy_platform},
    {"destroy-platform-fns-null", no_destroy_platform_fns},
    {"version-0.0.99", other_version},
    {"params-size-0", params_size_0},
    {"platform-size-0", platform_size_0},
    {"fns-size-0", fns_size_0},
    {"fns-size-unwritten", fns_size_unwritten},
    {"device-fns-size-0", device_fns_size_0},
    {"executor-size-0", executor_size_0},
    {"device-size-0", device_size_0},
    {"platform-larger", platform_larger},
    {"executor-larger", executor_larger},
    {"name-null", null_name},
    {"name-unreadable", name_not_readable},
    {"name-lower-case", lower_case_name},
    {"name-with-digit", name_with_digit},
    {"name-of-host", name_of_host},
    {"type-null", null_type},
    {"type-empty", empty_type},
    {"type-lower-case", lower_case_type},
    {"type-with-digit", type_with_digit},
    {"type-with-dash", type_with_dash},
    {"type-with-colon", type_with_colon},
    {"flag-2", flag_2},
    {"no-timers", no_timers},
    {"no-unified-memory", no_unified_memory},
    {"unified-memory", unified_memory},
    {"bfc-allocator", bfc_allocator},
    {"no-device-fns", no_device_fns},
    {"slot-not-code", slot_not_code},
    {"structs-replaced", structs_replaced},
    {"structs-forgotten", structs_forgotten},
    {"structs-unreadable", structs_unreadable},
    {NULL, NULL},
};
