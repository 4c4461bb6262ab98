// The plugin in memory, as a client of a server that never answers.
#include "../../../modular_tf/include/modular_tf/filesystem.h"

#include <unistd.h>

extern "C" void reference_init_plugin(TF_FilesystemPluginInfo* info);

static void wait_for_server(const TF_Filesystem*, const char*, TF_Status*) {
  while (true) pause();
}

extern "C" TF_CAPI_EXPORT void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  reference_init_plugin(info);
  TF_FilesystemOps& ops = *info->ops->filesystem_ops;
  ops.create_dir = wait_for_server;
  ops.recursively_create_dir = wait_for_server;
}
