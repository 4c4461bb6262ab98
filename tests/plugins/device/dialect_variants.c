/* Variants that were built with the headers of other days: same names, other offsets. */
#include <stddef.h>
#include <string.h>

#include "good_device.h"
#include "plan.h"

/* ---- TensorFlow 2.7 and 2.8: no force_memory_growth ---- */

static void of_2_7(void) {
  plan.platform.struct_size = TF_OFFSET_OF_END(SP_Platform, use_bfc_allocator);
}

/* ---- TensorFlow 2.5 and 2.6: no fills in the executor, so host_callback comes earlier ---- */

static void of_2_5(void) {
  of_2_7();
  char* table = (char*)&plan.executor;
  size_t fills = offsetof(SP_StreamExecutor, mem_zero);
  size_t callback = offsetof(SP_StreamExecutor, host_callback);
  memmove(table + fills, table + callback, sizeof(void*));
  memset(table + fills + sizeof(void*), 0, callback - fills);
  plan.executor.struct_size = fills + sizeof(void*);
}

/* ---- TensorFlow 2.4: the count is a field of the platform, not a function ---- */

typedef struct platform_of_2_4 {
  size_t struct_size;
  void* ext;
  const char* name;
  const char* type;
  size_t visible_device_count;
  TF_Bool supports_unified_memory;
} platform_of_2_4;

static void write_platform_of_2_4(SE_PlatformRegistrationParams* params) {
  platform_of_2_4 old = {0};
  memcpy(&old, params->platform, offsetof(platform_of_2_4, visible_device_count));
  old.visible_device_count = (size_t)plan.device_count;
  memcpy(params->platform, &old, sizeof(old));
}

static void remove_slot(size_t offset) {
  char* table = (char*)&plan.platform_fns;
  size_t behind = offset + sizeof(void*);
  memmove(table + offset, table + behind, sizeof(SP_PlatformFns) - behind);
  memset(table + sizeof(SP_PlatformFns) - sizeof(void*), 0, sizeof(void*));
}

static void of_2_4(void) {
  of_2_5();
  remove_slot(offsetof(SP_PlatformFns, get_device_count));
  plan.platform.struct_size = TF_OFFSET_OF_END(platform_of_2_4, supports_unified_memory);
  plan.platform_fns.struct_size = sizeof(SP_PlatformFns) - sizeof(void*);
  plan.registered = write_platform_of_2_4;
}

/* ---- The RFC of 2020-09-08: no device functions, allocators (unused here) in the table ---- */

typedef struct platform_of_rfc {
  size_t struct_size;
  void* ext;
  const char* name;
  const char* type;
  size_t visible_device_count;
} platform_of_rfc;

enum { RFC_FNS_ANNOUNCED = 64, RFC_FNS_REAL = 96, RFC_DEVICE = 32 };

static void write_structs_of_rfc(SE_PlatformRegistrationParams* params) {
  size_t count = (size_t)plan.device_count;
  memcpy((char*)params->platform + offsetof(platform_of_rfc, visible_device_count), &count,
         sizeof(count));
  memset((char*)params->platform_fns + RFC_FNS_ANNOUNCED, 0, RFC_FNS_REAL - RFC_FNS_ANNOUNCED);
}

static void of_rfc(void) {
  of_2_5();
  size_t create_device_fns = offsetof(SP_PlatformFns, create_device_fns) - sizeof(void*);
  remove_slot(offsetof(SP_PlatformFns, get_device_count));
  remove_slot(create_device_fns);
  remove_slot(create_device_fns); /* destroy_device_fns, which has moved there */
  plan.platform.struct_size = sizeof(platform_of_rfc);
  plan.platform_fns.struct_size = RFC_FNS_ANNOUNCED;
  plan.device.struct_size = RFC_DEVICE;
  plan.registered = write_structs_of_rfc;
}

static void of_rfc_silent(void) {
  of_rfc();
  plan.keeps_platform_size = plan.keeps_fns_size = 1;
}

/* The RFC's own example: it assigns a fresh struct to *params and goes on through its pointers. */
static void assign_params(SE_PlatformRegistrationParams* params) {
  *params = (SE_PlatformRegistrationParams){.struct_size = params->struct_size};
  /* A compiler that saw that this is NULL would leave out what follows. */
  SP_Platform* platform = ((volatile SE_PlatformRegistrationParams*)params)->platform;
  platform->name = "NEVER";
}

static void of_rfc_example(void) {
  of_rfc();
  plan.registered = assign_params;
}

/* ---- Sizes that no single header has together ---- */

static void mixed(void) {
  of_rfc();
  plan.platform_fns.struct_size = sizeof(SP_PlatformFns) - sizeof(void*);
}

const variant dialect_variants[] = {
    {"dialect-2.7", of_2_7},
    {"dialect-2.5", of_2_5},
    {"dialect-2.4", of_2_4},
    {"dialect-rfc", of_rfc},
    {"dialect-rfc-silent", of_rfc_silent},
    {"dialect-rfc-example", of_rfc_example},
    {"dialect-mixed", mixed},
    {NULL, NULL},
};
