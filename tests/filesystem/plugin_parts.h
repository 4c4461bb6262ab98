/* What the plugins in C of this folder share: a filesystem without a state, and offering a scheme. */
#ifndef TESTS_PLUGIN_PARTS_H
#define TESTS_PLUGIN_PARTS_H
#include <stdlib.h>
#include <string.h>

#include "modular_tf/filesystem.h"

static inline void start_nothing(TF_Filesystem* filesystem, TF_Status* status) {
  (void)filesystem, (void)status;
}
static inline void end_nothing(TF_Filesystem* filesystem) { (void)filesystem; }

static inline void* allocate(size_t size) { return malloc(size); }

static inline void* heap(const void* bytes, size_t size) {
  return bytes == NULL ? NULL : memcpy(malloc(size), bytes, size);
}

/* Offers one more scheme, with NULL for the files that it does not have. */
static inline void offer(TF_FilesystemPluginInfo* info, const char* scheme,
                         const TF_FilesystemOps* filesystem, const TF_RandomAccessFileOps* reader,
                         const TF_WritableFileOps* writer,
                         const TF_ReadOnlyMemoryRegionOps* region) {
  info->plugin_memory_allocate = allocate;
  info->plugin_memory_free = free;
  info->ops = realloc(info->ops, (size_t)(info->num_schemes + 1) * sizeof *info->ops);
  TF_FilesystemPluginOps* ops = memset(&info->ops[info->num_schemes++], 0, sizeof *ops);
  TF_SetFilesystemVersionMetadata(ops);
  ops->scheme = heap(scheme, strlen(scheme) + 1);
  ops->filesystem_ops = heap(filesystem, sizeof *filesystem);
  ops->random_access_file_ops = heap(reader, sizeof *reader);
  ops->writable_file_ops = heap(writer, sizeof *writer);
  ops->read_only_memory_region_ops = heap(region, sizeof *region);
}

#endif
