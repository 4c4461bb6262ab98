// A reference plugin whose rename_file writes through a pointer that it never set.
#include "modular_tf/filesystem.h"
#include "modular_tf/status.h"

// The reference plugin's own entry point, under the name that it is compiled with.
extern "C" void reference_init_plugin(TF_FilesystemPluginInfo* info);

namespace crashing {

struct Journal {
  long renamed;
};

Journal* volatile journal = nullptr;

// Hidden, as most functions of a plugin are: only the full symbol table names it.
[[gnu::noinline]] void note_rename(const char* source, Journal* into) {
  into->renamed += source != nullptr;  // the line of the crash
}

void rename_file(const TF_Filesystem*, const char* source, const char*, TF_Status* status) {
  note_rename(source, journal);
  TF_SetStatus(status, TF_OK, "");
}

}  // namespace crashing

extern "C" TF_CAPI_EXPORT void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  reference_init_plugin(info);
  info->ops->filesystem_ops->rename_file = crashing::rename_file;
}
