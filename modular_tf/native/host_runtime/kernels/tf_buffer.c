/* TF_Buffer, and the functions that hand out lists of the host's. */
#include <stdlib.h>
#include <string.h>

#include "modular_tf/ops.h"

static void free_bytes(void* data, size_t length) {
  (void)length;
  free(data);
}

TF_Buffer* TF_NewBuffer(void) { return calloc(1, sizeof(TF_Buffer)); }

TF_Buffer* TF_NewBufferFromString(const void* bytes, size_t length) {
  TF_Buffer* buffer = TF_NewBuffer();
  if (buffer == NULL || bytes == NULL || length == 0) return buffer;
  void* copy = malloc(length);
  if (copy == NULL) {
    free(buffer);
    return NULL;
  }
  memcpy(copy, bytes, length);
  *buffer = (TF_Buffer){copy, length, free_bytes};
  return buffer;
}

void TF_DeleteBuffer(TF_Buffer* buffer) {
  if (buffer == NULL) return;
  if (buffer->data_deallocator != NULL) {
    buffer->data_deallocator((void*)buffer->data, buffer->length);
  }
  free(buffer);
}

TF_Buffer TF_GetBuffer(TF_Buffer* buffer) {
  return buffer == NULL ? (TF_Buffer){NULL, 0, NULL} : *buffer;
}

const char* TF_Version(void) { return "2.21.0"; }

/* Both lists would be serialized protocol buffers. An empty one is a valid answer to who looks for
 * what is there already: a definition that is registered again is accepted. */

TF_Buffer* TF_GetAllOpList(void) { return TF_NewBuffer(); }

TF_Buffer* TF_GetRegisteredKernelsForOp(const char* op_name, TF_Status* status) {
  (void)op_name;
  TF_Buffer* list = TF_NewBuffer();
  if (list == NULL) TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory for a list of kernels");
  if (list != NULL) TF_SetStatus(status, TF_OK, "");
  return list;
}
