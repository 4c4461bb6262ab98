// Memory that the host makes and a worker process may map too.
#pragma once

#include <cstddef>

namespace mtf {

constexpr size_t kHugePage = size_t{2} << 20;

// Memory of this size, in which another process can change the values of bytes and not their number; the
// caller closes `file`. NULL: there is none.
void* new_shared_memory(size_t size, int* file);

// Maps such memory, so that it may have huge pages where its size is a multiple of theirs. The caller
// unmaps it. NULL: there is no room for it.
void* map_shared_memory(int file, size_t size);

// Brings the memory behind one huge page, whose bytes stay: as one page where the kernel can (from Linux
// 6.1 on), in small ones else. That takes a fifth of the time of writing to each small page first, in two
// processes. False: the kernel can neither (before Linux 5.14), or has no memory.
bool bring_huge_page(char* page);

}  // namespace mtf
