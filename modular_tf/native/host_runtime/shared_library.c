/* Libraries that a plugin loads by itself. They stay mapped: pointers into them may exist. */
#include <dlfcn.h>

#include "modular_tf/env.h"

static void* found(void* result, TF_Status* status) {
  TF_SetStatus(status, result == NULL ? TF_NOT_FOUND : TF_OK, result == NULL ? dlerror() : NULL);
  return result;
}

void* TF_LoadSharedLibrary(const char* library_filename, TF_Status* status) {
  return found(dlopen(library_filename, RTLD_NOW | RTLD_LOCAL), status);
}

void* TF_GetSymbolFromLibrary(void* handle, const char* symbol_name, TF_Status* status) {
  if (handle == NULL) {
    TF_SetStatus(status, TF_INVALID_ARGUMENT, "library handle is NULL");
    return NULL;
  }
  return found(dlsym(handle, symbol_name), status);
}
