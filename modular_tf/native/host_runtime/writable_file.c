/* Writable files over stdio: appends are buffered until a flush, a sync or the close. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "copied_text.h"
#include "local_path.h"
#include "modular_tf/env.h"

struct TF_WritableFileHandle {
  FILE* stream;
  char name[]; /* as the caller gave it, for messages */
};

/* NULL and errno set on failure. */
static TF_WritableFileHandle* open_file(const char* path, const char* name) {
  const size_t length = mtf_text_length(name);
  TF_WritableFileHandle* file = malloc(sizeof(*file) + length + 1);
  if (file == NULL) return NULL;
  mtf_put_text(file->name, name, length);
  file->stream = fopen(path, "we");
  if (file->stream != NULL) return file;
  const int error = errno;
  free(file);
  errno = error;
  return NULL;
}

void TF_NewWritableFile(const char* filename, TF_WritableFileHandle** handle, TF_Status* status) {
  const char* path = mtf_local_path(filename, status);
  *handle = path == NULL ? NULL : open_file(path, filename);
  if (path != NULL && *handle == NULL) TF_SetStatusFromIOError(status, errno, filename);
}

/* Sets OK, or the errno of a call that failed. */
static void report(const TF_WritableFileHandle* handle, bool is_done, TF_Status* status) {
  TF_SetStatusFromIOError(status, is_done ? 0 : errno, handle->name);
}

void TF_AppendWritableFile(TF_WritableFileHandle* handle, const char* data, size_t length,
                           TF_Status* status) {
  report(handle, length == 0 || fwrite(data, 1, length, handle->stream) == length, status);
}

void TF_FlushWritableFile(TF_WritableFileHandle* handle, TF_Status* status) {
  report(handle, fflush(handle->stream) == 0, status);
}

void TF_SyncWritableFile(TF_WritableFileHandle* handle, TF_Status* status) {
  report(handle, fflush(handle->stream) == 0 && fsync(fileno(handle->stream)) == 0, status);
}

void TF_CloseWritableFile(TF_WritableFileHandle* handle, TF_Status* status) {
  report(handle, fclose(handle->stream) == 0, status);
  free(handle);
}
