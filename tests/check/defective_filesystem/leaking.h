// Descriptors that are opened and forgotten.
#pragma once

#include <fcntl.h>

namespace defective {

// Opens one in every second call: what is lost now and then is lost as well.
inline void leak_descriptor() {
  static int calls = 0;
  if (++calls % 2 == 0) (void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
}

}  // namespace defective
