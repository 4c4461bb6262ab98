/* Shared libraries of env.h, driven from C. */
#include "cases.h"
#include "modular_tf/env.h"

typedef double (*real_function)(double);

CASE(a_symbol_of_a_loaded_library_can_be_called) {
  TF_Status* status = TF_NewStatus();
  real_function cosine = NULL;
  void* library = TF_LoadSharedLibrary("libm.so.6", status);
  CHECK_CODE(TF_OK, status);
  void* symbol = TF_GetSymbolFromLibrary(library, "cos", status);
  CHECK_CODE(TF_OK, status);
  memcpy(&cosine, &symbol, sizeof(cosine));
  CHECK(cosine(0.0) == 1.0);
  TF_DeleteStatus(status);
}

CASE(a_library_that_is_not_there) {
  TF_Status* status = TF_NewStatus();
  CHECK(TF_LoadSharedLibrary("/nonexistent/libnone.so", status) == NULL);
  CHECK_CODE(TF_NOT_FOUND, status);
  CHECK(strstr(TF_Message(status), "/nonexistent/libnone.so") != NULL);
  TF_DeleteStatus(status);
}

CASE(a_symbol_that_is_not_there) {
  TF_Status* status = TF_NewStatus();
  void* library = TF_LoadSharedLibrary("libm.so.6", status);
  CHECK(TF_GetSymbolFromLibrary(library, "no_such_symbol", status) == NULL);
  CHECK_CODE(TF_NOT_FOUND, status);
  CHECK(strstr(TF_Message(status), "no_such_symbol") != NULL);
  CHECK(TF_GetSymbolFromLibrary(NULL, "cos", status) == NULL);
  CHECK_CODE(TF_INVALID_ARGUMENT, status);
  TF_DeleteStatus(status);
}
