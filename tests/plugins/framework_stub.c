/* Stands in for the host's library while a plugin is linked, so that the plugin names it as needed.
 * It is never loaded: the host brings the real one. */
#define OFFERED(name) \
  __attribute__((visibility("default"))) void name(void); \
  void name(void) {}

OFFERED(TF_NewStatus)
OFFERED(TF_DeleteStatus)
OFFERED(TF_SetStatus)
OFFERED(TF_GetCode)
OFFERED(TF_Message)
