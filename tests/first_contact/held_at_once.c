/* A filesystem plugin of two schemes, of which only one may live at a time; with DEVICE also a device
 * plugin, which may not be initialised while one lives. Else it aborts. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "modular_tf/filesystem.h"

static int living = 0;

static void init(TF_Filesystem* filesystem, TF_Status* status) {
  (void)filesystem;
  (void)status;
#ifndef DEVICE
  if (living > 0) abort();
#endif
  ++living;
}

static void cleanup(TF_Filesystem* filesystem) {
  (void)filesystem;
  --living;
}

__attribute__((visibility("default"))) void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  info->plugin_memory_allocate = malloc;
  info->plugin_memory_free = free;
  info->num_schemes = 2;
  info->ops = calloc(info->num_schemes, sizeof *info->ops);
  for (size_t at = 0; at < info->num_schemes; ++at) {
    TF_FilesystemPluginOps* ops = &info->ops[at];
    TF_SetFilesystemVersionMetadata(ops);
    ops->scheme = strdup(at == 0 ? "one" : "other");
    ops->filesystem_ops = calloc(1, TF_FILESYSTEM_OPS_SIZE);
    ops->filesystem_ops->init = init;
    ops->filesystem_ops->cleanup = cleanup;
  }
}

#ifdef DEVICE
__attribute__((visibility("default"))) void SE_InitPlugin(void* params, TF_Status* status) {
  (void)params;
  (void)status;
  if (living > 0) abort();
}
#endif
