/* A filesystem of computed files, on which nothing can be made: squares://N, for each number N, is
 * the text of its square. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modular_tf/filesystem.h"

static void init(TF_Filesystem* filesystem, TF_Status* status) {
  filesystem->plugin_filesystem = NULL;
  TF_SetStatus(status, TF_OK, "");
}

static void cleanup(TF_Filesystem* filesystem) { filesystem->plugin_filesystem = NULL; }

/* The text of a file, or NULL with a status; plugin_memory_free frees it. */
static char* text_of(const char* path, TF_Status* status) {
  const char* name = strstr(path, "://");
  name = name == NULL ? path : name + 3;
  size_t length = strlen(name);
  if (length == 0 || length > 8 || strspn(name, "0123456789") < length) {
    TF_SetStatus(status, TF_NOT_FOUND, "no number is named");
    return NULL;
  }
  char* text = malloc(32);
  if (text == NULL) {
    TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "out of memory");
    return NULL;
  }
  const long long number = atoll(name);
  snprintf(text, 32, "%lld", number * number);
  TF_SetStatus(status, TF_OK, "");
  return text;
}

static void open_file(const TF_Filesystem* filesystem, const char* path, TF_RandomAccessFile* file,
                      TF_Status* status) {
  (void)filesystem;
  char* text = text_of(path, status);
  if (text != NULL) file->plugin_file = text;
}

static void close_file(TF_RandomAccessFile* file) { free(file->plugin_file); }

static int64_t read_file(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
                         TF_Status* status) {
  const char* text = file->plugin_file;
  const size_t left = offset < strlen(text) ? strlen(text) - offset : 0;
  const size_t count = n < left ? n : left;
  if (count > 0) memcpy(buffer, text + offset, count);
  TF_SetStatus(status, count < n ? TF_OUT_OF_RANGE : TF_OK, count < n ? "the end" : "");
  return (int64_t)count;
}

static void path_exists(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem;
  free(text_of(path, status));
}

static void stat_file(const TF_Filesystem* filesystem, const char* path,
                      TF_FileStatistics* statistics, TF_Status* status) {
  (void)filesystem;
  char* text = text_of(path, status);
  if (text == NULL) return;
  *statistics = (TF_FileStatistics){(int64_t)strlen(text), 0, false};
  free(text);
}

TF_CAPI_EXPORT void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  info->plugin_memory_allocate = malloc;
  info->plugin_memory_free = free;
  info->num_schemes = 1;
  info->ops = calloc(1, sizeof *info->ops);
  TF_SetFilesystemVersionMetadata(info->ops);
  info->ops->scheme = strdup("squares");
  info->ops->filesystem_ops = calloc(1, TF_FILESYSTEM_OPS_SIZE);
  info->ops->filesystem_ops->init = init;
  info->ops->filesystem_ops->cleanup = cleanup;
  info->ops->filesystem_ops->new_random_access_file = open_file;
  info->ops->filesystem_ops->path_exists = path_exists;
  info->ops->filesystem_ops->stat = stat_file;
  info->ops->random_access_file_ops = calloc(1, TF_RANDOM_ACCESS_FILE_OPS_SIZE);
  info->ops->random_access_file_ops->cleanup = close_file;
  info->ops->random_access_file_ops->read = read_file;
}
