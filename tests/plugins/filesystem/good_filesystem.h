/* The fixture's well-behaved filesystem: every slot of the 33-slot table is filled. */
#ifndef FIXTURE_GOOD_FILESYSTEM_H_
#define FIXTURE_GOOD_FILESYSTEM_H_

#include "modular_tf/filesystem.h"

extern const TF_FilesystemOps good_filesystem_ops;

#endif
