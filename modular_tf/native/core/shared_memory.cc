#include "shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "huge_pages.h"

namespace mtf {
namespace {

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // older headers of the C library lack it
#endif

constexpr size_t kSmallPage = 4096;

// Address space of this size that begins at a multiple of a huge page, and nobody else has. NULL: none.
char* aligned_space(size_t size) {
  const size_t most = size + kHugePage;
  void* found = mmap(nullptr, most, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return nullptr;
  auto* const space = static_cast<char*>(found);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(space) % kHugePage) % kHugePage;
  if (before > 0) munmap(space, before);
  munmap(space + before + size, kHugePage - before);
  return space + before;
}

}  // namespace

// Where the kernel refuses to map into the space, it may have unmapped that first: who has it now is not
// known, and it is left.
void* map_shared_memory(int file, size_t size) {
  char* const space = size % kHugePage == 0 ? aligned_space(size) : nullptr;
  const int flags = MAP_SHARED | (space != nullptr ? MAP_FIXED : 0);
  void* made = mmap(space, size, PROT_READ | PROT_WRITE, flags, file, 0);
  return made != MAP_FAILED ? made : nullptr;
}

void* new_shared_memory(size_t size, int* file) {
  *file = memfd_create("modular_tf call", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (*file < 0) return nullptr;
  if (ftruncate(*file, static_cast<off_t>(size)) == 0 &&
      fcntl(*file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    if (void* made = map_shared_memory(*file, size)) return made;
  }
  close(*file);
  *file = -1;
  return nullptr;
}

bool bring_huge_page(char* page) {
  if (!mtf_bring_pages(page, kSmallPage)) return false;  // a hole alone becomes no huge page
  const int kept = errno;
  const bool is_huge = madvise(page, kHugePage, MADV_COLLAPSE) == 0;
  errno = kept;
  return is_huge || mtf_bring_pages(page, kHugePage);
}

}  // namespace mtf
