// The entry point: the reference plugin's tables, with one defect.
#include "defects.h"

// The reference plugin's own entry point, under the name that it is compiled with.
extern "C" void reference_init_plugin(TF_FilesystemPluginInfo* info);

defective::Originals defective::original;

namespace defective {
void add_options(Tables& tables) __attribute__((weak));  // of the fixture in memory: options.cc
}

extern "C" TF_CAPI_EXPORT void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  reference_init_plugin(info);
  TF_FilesystemPluginOps& registration = *info->ops;
  defective::Tables tables{*info,
                           registration,
                           *registration.filesystem_ops,
                           *registration.random_access_file_ops,
                           *registration.writable_file_ops,
                           *registration.read_only_memory_region_ops};
  if (defective::add_options != nullptr) defective::add_options(tables);
  defective::original = {tables.filesystem, tables.reading, tables.writing, tables.region};
  defective::apply_chosen_defect(tables);
}
