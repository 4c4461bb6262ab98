/* Making, listing and removing single directory entries. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "local_path.h"
#include "modular_tf/env.h"
#include "string_stream.h"

void TF_CreateDir(const char* dirname, TF_Status* status) {
  const char* path = mtf_local_path(dirname, status);
  if (path != NULL && mkdir(path, 0755) != 0) TF_SetStatusFromIOError(status, errno, dirname);
}

void TF_DeleteDir(const char* dirname, TF_Status* status) {
  const char* path = mtf_local_path(dirname, status);
  if (path != NULL && rmdir(path) != 0) TF_SetStatusFromIOError(status, errno, dirname);
}

void TF_DeleteFile(const char* filename, TF_Status* status) {
  const char* path = mtf_local_path(filename, status);
  if (path != NULL && unlink(path) != 0) TF_SetStatusFromIOError(status, errno, filename);
}

static int is_self_or_parent(const char* name) {
  return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Returns the errno that ended the listing, 0 at its regular end. */
static int list_into(TF_StringStream* names, DIR* directory) {
  for (;;) {
    errno = 0;
    const struct dirent* entry = readdir(directory);
    if (entry == NULL) return errno;
    if (is_self_or_parent(entry->d_name)) continue;
    if (!mtf_string_stream_add(names, strdup(entry->d_name))) return ENOMEM;
  }
}

static int list_directory(TF_StringStream* names, const char* path) {
  DIR* directory = opendir(path);
  if (directory == NULL) return errno;
  const int error = list_into(names, directory);
  closedir(directory);
  return error;
}

TF_StringStream* TF_GetChildren(const char* filename, TF_Status* status) {
  TF_StringStream* names = mtf_string_stream_new();
  const char* path = mtf_local_path(filename, status);
  if (path == NULL) return names;
  const int error = names == NULL ? ENOMEM : list_directory(names, path);
  if (error == 0) return names;
  TF_SetStatusFromIOError(status, error, filename);
  TF_StringStreamDone(names);
  return mtf_string_stream_new(); /* empty, as TensorFlow's is, not half a listing */
}
