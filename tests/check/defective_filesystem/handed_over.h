// A table that the plugin hands over, and keeps a pointer to.
#pragma once

#include "defects.h"

namespace defective {

// The TF_FilesystemOps that was registered last. The host's free leaves it alone, so that nothing
// worse comes of it than the defect.
extern TF_FilesystemOps* handed_over;

void keep_hold_of_table(Tables& tables);

}  // namespace defective
