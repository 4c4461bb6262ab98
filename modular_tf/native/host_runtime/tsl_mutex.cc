// A futex lock. std::mutex has 40 bytes and plugins reserve 16; a pointer to one would leak, since
// the plugin's destructor does nothing, and would be missing in mutexes that were only zeroed.
#include "tsl_mutex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tsl {
namespace {

constexpr uint32_t kFree = 0;
constexpr uint32_t kHeld = 1;
constexpr uint32_t kHeldAndWanted = 2;

uint32_t* word(std::atomic<uint32_t>& state) { return reinterpret_cast<uint32_t*>(&state); }

void sleep_while_wanted(std::atomic<uint32_t>& state) {
  syscall(SYS_futex, word(state), FUTEX_WAIT_PRIVATE, kHeldAndWanted, nullptr, nullptr, 0);
}

void wake_one(std::atomic<uint32_t>& state) {
  syscall(SYS_futex, word(state), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace

mutex::mutex() : state_(kFree), unused_{} {}

void mutex::lock() {
  uint32_t expected = kFree;
  if (state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire)) return;
  while (state_.exchange(kHeldAndWanted, std::memory_order_acquire) != kFree) {
    sleep_while_wanted(state_);
  }
}

void mutex::unlock() {
  if (state_.exchange(kFree, std::memory_order_release) == kHeldAndWanted) wake_one(state_);
}

}  // namespace tsl
