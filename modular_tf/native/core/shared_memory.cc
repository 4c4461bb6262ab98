#include "shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace mtf {

void* map_shared_memory(int file, size_t size) {
  void* made = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
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

}  // namespace mtf
