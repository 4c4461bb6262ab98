/* What the device plugin is going to register: the well-behaved structs, as a variant changed them.
 *
 * The plan is the library's only state besides the ledger: every create_* function copies its part
 * of it to the host. */
#pragma once

#include "modular_tf/device.h"

typedef struct device_plan {
  SE_PlatformRegistrationParams params; /* the destroy functions, struct_size and the version */
  SP_Platform platform;
  SP_PlatformFns platform_fns;
  SP_DeviceFns device_fns;
  SP_StreamExecutor executor;
  SP_TimerFns timer_fns;
  SP_Device device; /* but for its ordinal and handle */
  int device_count;
  int keeps_platform_size, keeps_fns_size; /* 1: struct_size stays what the host put there */
  TF_Code failure; /* what SE_InitPlugin ends with; TF_OK changes nothing */
  /* Called last in SE_InitPlugin, with the host's params; may be NULL. */
  void (*registered)(SE_PlatformRegistrationParams* params);
} device_plan;

extern device_plan plan;

/* Fills the plan with the well-behaved plugin. */
void plan_good_device(const char* type, const char* platform);

/* One way to differ from the well-behaved plugin. */
typedef struct variant {
  const char* name;
  void (*apply)(void);
} variant;

/* The variants of each file, ended by a NULL name. */
extern const variant registration_variants[];
extern const variant dialect_variants[];
extern const variant behaviour_variants[];

/* Applies the variant `name`: one of the tables above, "good", or "STRUCT-SLOT-null" for a NULL
 * slot of SP_PlatformFns ("fns") or SP_StreamExecutor ("executor"). An unknown name aborts. */
void apply_variant(const char* name);

/* Clears the slot that "STRUCT-SLOT-null" names; 0 when it names none. */
int clear_slot(const char* name);

/* Hands the plan to the host, as SE_InitPlugin does. */
void register_plan(SE_PlatformRegistrationParams* params, TF_Status* status);
