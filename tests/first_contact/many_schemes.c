/* A filesystem plugin that offers COUNT schemes of LENGTH letters, each of which breaks rules. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modular_tf/filesystem.h"

static char* new_scheme(int at) {
  char* scheme = malloc(LENGTH + 1);
  snprintf(scheme, LENGTH + 1, "s%0*d", LENGTH - 1, at);
  return scheme;
}

__attribute__((visibility("default"))) void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  info->plugin_memory_allocate = malloc;
  info->plugin_memory_free = free;
  info->num_schemes = COUNT;
  info->ops = calloc(COUNT, sizeof *info->ops);
  for (int at = 0; at < COUNT; ++at) {
    TF_FilesystemPluginOps* ops = &info->ops[at];
    TF_SetFilesystemVersionMetadata(ops);
    ops->scheme = new_scheme(at);
    ops->filesystem_ops = calloc(1, TF_FILESYSTEM_OPS_SIZE);
    ops->random_access_file_ops = calloc(1, TF_RANDOM_ACCESS_FILE_OPS_SIZE);
    ops->writable_file_ops = calloc(1, TF_WRITABLE_FILE_OPS_SIZE);
    ops->read_only_memory_region_ops = calloc(1, TF_READ_ONLY_MEMORY_REGION_OPS_SIZE);
    ops->filesystem_ops_api = ops->random_access_file_ops_api = 7;
    ops->writable_file_ops_api = ops->read_only_memory_region_ops_api = 7;
  }
}
