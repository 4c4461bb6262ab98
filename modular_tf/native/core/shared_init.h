// What one init of a plugin made, for all its filesystems of the process: some plugins' cleanup ends
// more than the filesystem that it is given.
#pragma once

#include "guard.h"
#include "modular_tf/filesystem.h"

namespace mtf {

// Calls init unless another filesystem of the plugin is in use, and lets `handle` have what it made.
Error join_shared_init(const TF_FilesystemOps& table, const mtf_plugin* plugin,
                       TF_Filesystem* handle);

// Calls cleanup after the last use.
Error leave_shared_init(const TF_FilesystemOps& table, const mtf_plugin* plugin);

// In a forked child, before it has threads: the first caller calls init anew.
Error repeat_shared_init(const TF_FilesystemOps& table, const mtf_plugin* plugin,
                         TF_Filesystem* handle);

}  // namespace mtf
