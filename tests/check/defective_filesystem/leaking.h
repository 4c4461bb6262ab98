// Descriptors that are opened and forgotten.
#pragma once

#include <fcntl.h>

namespace defective {

inline void leak_descriptor() { (void)!open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace defective
