/* A filesystem plugin whose every file consists of its number, again and again. Scheme and number
 * are bytes of the library that a test replaces by others of the same length, so that there are as
 * many libraries as one wants for one build. */
#include <stdlib.h>
#include <string.h>

#include "modular_tf/filesystem.h"

enum { DIGITS = 8, REPEATS = 512 };

static volatile char number[] = "number=00000000";
static volatile char scheme[] = "scheme=slot00";

static char digit(uint64_t at) { return number[sizeof("number=") - 1 + at % DIGITS]; }

static void start(TF_Filesystem* filesystem, TF_Status* status) { (void)filesystem, (void)status; }
static void end(TF_Filesystem* filesystem) { (void)filesystem; }

static void open_reader(const TF_Filesystem* filesystem, const char* path,
                        TF_RandomAccessFile* file, TF_Status* status) {
  (void)filesystem, (void)path, (void)status;
  file->plugin_file = malloc(1);
}

static void clean_up(TF_RandomAccessFile* file) { free(file->plugin_file); }

static int64_t read_file(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
                         TF_Status* status) {
  (void)file;
  const uint64_t length = DIGITS * REPEATS;
  size_t count = 0;
  for (; count < n && offset + count < length; ++count) buffer[count] = digit(offset + count);
  if (count < n) TF_SetStatus(status, TF_OUT_OF_RANGE, "the end");
  return (int64_t)count;
}

static int64_t size_of(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem, (void)path, (void)status;
  return DIGITS * REPEATS;
}

static void* heap(const void* bytes, size_t size) { return memcpy(malloc(size), bytes, size); }
static void* allocate(size_t size) { return malloc(size); }

void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  TF_FilesystemOps filesystem = {.init = start,
                                 .cleanup = end,
                                 .new_random_access_file = open_reader,
                                 .get_file_size = size_of};
  TF_RandomAccessFileOps reader = {.cleanup = clean_up, .read = read_file};
  const size_t prefix = sizeof("scheme=") - 1;
  info->plugin_memory_allocate = allocate;
  info->plugin_memory_free = free;
  info->num_schemes = 1;
  info->ops = calloc(1, sizeof(TF_FilesystemPluginOps));
  TF_SetFilesystemVersionMetadata(info->ops);
  info->ops->scheme = heap((const char*)scheme + prefix, sizeof(scheme) - prefix);
  info->ops->filesystem_ops = heap(&filesystem, sizeof(filesystem));
  info->ops->random_access_file_ops = heap(&reader, sizeof(reader));
}
