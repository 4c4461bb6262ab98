/* The places of a filesystem plugin that serves the scheme `misdeed` and can do nothing else. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "misdeed.h"
#include "modular_tf/filesystem.h"

static void init(TF_Filesystem* filesystem, TF_Status* status) {
  (void)filesystem;
  (void)status;
  misbehave_at(SCHEME_INIT);
}
static void cleanup(TF_Filesystem* filesystem) {
  (void)filesystem;
  misbehave_at(CLEANUP);
}

__attribute__((visibility("default"))) void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  misbehave_at(INIT);
  info->plugin_memory_allocate = malloc;
  info->plugin_memory_free = free;
  info->num_schemes = 1;
  info->ops = calloc(1, sizeof *info->ops);
  TF_SetFilesystemVersionMetadata(info->ops);
  info->ops->scheme = strdup("misdeed");
  info->ops->filesystem_ops = calloc(1, TF_FILESYSTEM_OPS_SIZE);
  info->ops->filesystem_ops->init = init;
  info->ops->filesystem_ops->cleanup = cleanup;
}
