/* Stands for a TensorFlow that is in the process already: the same names, and every call wrong. */
#include <stdlib.h>

#define IMPOSTOR(name) \
  __attribute__((visibility("default"))) void name(void); \
  void name(void) { _Exit(99); }

IMPOSTOR(TF_NewStatus)
IMPOSTOR(TF_DeleteStatus)
IMPOSTOR(TF_SetStatus)
IMPOSTOR(TF_SetStatusFromIOError)
IMPOSTOR(TF_GetCode)
IMPOSTOR(TF_Message)
IMPOSTOR(TF_Log)
