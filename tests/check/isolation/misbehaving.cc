// The plugin in memory, with a misdeed where a file is renamed (or where misdeed.c has it).
#include "../../../modular_tf/include/modular_tf/filesystem.h"

extern "C" {
void reference_init_plugin(TF_FilesystemPluginInfo* info);
#include "../../first_contact/misdeed.h"
}

static decltype(TF_FilesystemOps::rename_file) original_rename_file;
static decltype(TF_FilesystemOps::cleanup) original_cleanup;

static void rename_file(const TF_Filesystem* filesystem, const char* source, const char* target,
                        TF_Status* status) {
  misbehave_at(SCHEME_INIT);
  original_rename_file(filesystem, source, target, status);
}

static void cleanup(TF_Filesystem* filesystem) {
  misbehave_at(CLEANUP);
  original_cleanup(filesystem);
}

extern "C" TF_CAPI_EXPORT void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  misbehave_at(INIT);
  reference_init_plugin(info);
  TF_FilesystemOps& ops = *info->ops->filesystem_ops;
  original_rename_file = ops.rename_file;
  original_cleanup = ops.cleanup;
  ops.rename_file = rename_file;
  ops.cleanup = cleanup;
}
