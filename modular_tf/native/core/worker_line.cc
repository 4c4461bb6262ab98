#include "worker_line.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>

namespace mtf {

namespace {

void wake(Line& line) { syscall(SYS_futex, &line.turn, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

}  // namespace

void hand_over(Line& line, uint32_t turn) {
  line.turn.store(turn, std::memory_order_release);
  wake(line);
}

bool hand_back(Line& line) {
  uint32_t turn = kOfWorker;
  if (!line.turn.compare_exchange_strong(turn, kOfHost, std::memory_order_acq_rel)) return false;
  wake(line);
  return true;
}

int sleep_on(Line& line, uint32_t seen, int64_t most_ms) {
  const timespec most = {most_ms / 1000, most_ms % 1000 * 1000000};
  const timespec* end = most_ms > 0 ? &most : nullptr;
  return syscall(SYS_futex, &line.turn, FUTEX_WAIT, seen, end, nullptr, 0) == 0 ? 0 : errno;
}

void* new_shared_memory(size_t size, int* file) {
  *file = memfd_create("modular_tf call", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (*file < 0) return nullptr;
  if (ftruncate(*file, static_cast<off_t>(size)) == 0 &&
      fcntl(*file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    void* made = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
    if (made != MAP_FAILED) return made;
  }
  close(*file);
  *file = -1;
  return nullptr;
}

}  // namespace mtf
