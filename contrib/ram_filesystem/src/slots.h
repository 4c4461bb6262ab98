// The functions that go into the host's tables, and what `plugin_filesystem` points at.
//
// What each must do is said in modular_tf/filesystem_ops.h and modular_tf/file_ops.h.
#pragma once

#include <memory>

#include "account.h"
#include "modular_tf/filesystem.h"
#include "tree.h"

namespace ram {

// One registration. Its own tree: two registrations do not see each other's files.
struct Instance {
  std::shared_ptr<Account> account = std::make_shared<Account>();
  Tree tree{account};
};

inline Instance& instance_of(const TF_Filesystem* filesystem) {
  return *static_cast<Instance*>(filesystem->plugin_filesystem);
}

void fill_file_slots(TF_FilesystemOps& ops);        // file_slots.cc: the four ways to open
void fill_filesystem_slots(TF_FilesystemOps& ops);  // filesystem_slots.cc
void fill_option_slots(TF_FilesystemOps& ops);      // options.cc

TF_RandomAccessFileOps random_access_file_slots();
TF_WritableFileOps writable_file_slots();
TF_ReadOnlyMemoryRegionOps read_only_region_slots();

}  // namespace ram
