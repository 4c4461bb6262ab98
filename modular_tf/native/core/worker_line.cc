#include "worker_line.h"

#include <linux/futex.h>
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

}  // namespace mtf
