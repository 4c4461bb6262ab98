#include "host_runtime.h"
#include "modular_tf/export.h"

TF_CAPI_EXPORT const char* mtf_runtime_version(void) { return MODULAR_TF_VERSION; }
