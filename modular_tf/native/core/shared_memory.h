// Memory that the host makes and a worker process may map too.
#pragma once

#include <cstddef>

namespace mtf {

// Memory of this size, in which another process can change the values of bytes and not their number; the
// caller closes `file`. NULL: there is none.
void* new_shared_memory(size_t size, int* file);

// Maps such memory. The caller unmaps it. NULL: there is no room for it.
void* map_shared_memory(int file, size_t size);

}  // namespace mtf
