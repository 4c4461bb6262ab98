/* A plugin that calls into whatever host its references bind to. */
#include "modular_tf/env.h"
#include "modular_tf/logging.h"
#include "modular_tf/status.h"

/* 0 when a status that this library made holds what was put in. */
TF_CAPI_EXPORT int use_host(void);

int use_host(void) {
  TF_Status* status = TF_NewStatus();
  TF_SetStatusFromIOError(status, 2, "plugin");
  const int code = TF_GetCode(status);
  TF_DeleteStatus(status);
  TF_Log(TF_INFO, "from the plugin");
  return code == TF_NOT_FOUND ? 0 : 1;
}
