/* The fixture's well-behaved filesystem: every slot of the 33-slot table is filled. */
#pragma once

#include "modular_tf/filesystem.h"

extern const TF_FilesystemOps good_filesystem_ops;
