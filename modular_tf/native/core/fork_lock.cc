#include "fork_lock.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace mtf {
namespace {

constexpr uint32_t kHeld = 1;
constexpr uint32_t kWanted = 2;  // a thread sleeps until it is free
constexpr uint32_t kBits = kHeld | kWanted;

std::atomic<unsigned> forks{0};
const int watching_forks = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });

uint32_t free_here() { return fork_generation() * (kBits + 1); }

// Sleeps while `word` is `seen`; `most` may be NULL.
void sleep_while(std::atomic<uint32_t>& word, uint32_t seen, const std::chrono::nanoseconds* most) {
  constexpr int64_t kSecond = 1'000'000'000;
  timespec time = {};
  if (most != nullptr) time = {most->count() / kSecond, most->count() % kSecond};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, most == nullptr ? nullptr : &time, nullptr, 0);
}

void wake(std::atomic<uint32_t>& word, int most) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, most, nullptr, nullptr, 0);
}

}  // namespace

unsigned fork_generation() { return forks.load(std::memory_order_relaxed); }

bool watches_forks() { return watching_forks == 0; }

bool Lock::try_lock() {
  const uint32_t ours = free_here();
  uint32_t seen = state_.load(std::memory_order_relaxed);
  while ((seen & ~kBits) != ours || (seen & kHeld) == 0) {
    if (!state_.compare_exchange_weak(seen, ours | kHeld, std::memory_order_acquire)) continue;
    note_holder(seen);
    return true;
  }
  return false;
}

void Lock::lock() { lock_until(nullptr); }

bool Lock::try_lock_for(std::chrono::nanoseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  return lock_until(&end);
}

bool Lock::lock_until(const std::chrono::steady_clock::time_point* end) {
  const uint32_t ours = free_here();
  uint32_t seen = ours;
  if (state_.compare_exchange_strong(seen, ours | kHeld, std::memory_order_acquire)) return true;
  uint32_t taken = ours | kHeld;  // how it is taken: other threads may be sleeping too
  for (;;) {
    if ((seen & ~kBits) != ours || (seen & kHeld) == 0) {
      if (!state_.compare_exchange_weak(seen, taken, std::memory_order_acquire)) continue;
      note_holder(seen);
      return true;
    } else if ((seen & kWanted) != 0 || state_.compare_exchange_weak(seen, seen | kWanted)) {
      std::chrono::nanoseconds left{};
      if (end != nullptr) left = *end - std::chrono::steady_clock::now();
      // Who gives up leaves it wanted: it may be the one that was woken, and others sleep.
      if (end != nullptr && left.count() <= 0) return false;
      sleep_while(state_, ours | kBits, end == nullptr ? nullptr : &left);
      taken = ours | kBits;
      seen = state_.load(std::memory_order_relaxed);
    }
  }
}

// The state before it was taken: what is held then is held in another process.
void Lock::note_holder(uint32_t seen) {
  if ((seen & kHeld) != 0) is_abandoned_ = true;
}

void Lock::unlock() {
  const uint32_t was = state_.exchange(free_here(), std::memory_order_release);
  if ((was & kWanted) != 0) wake(state_, 1);
}

void Signal::notify_one() {
  count_.fetch_add(1);
  wake(count_, 1);
}

void Signal::notify_all() {
  count_.fetch_add(1);
  wake(count_, INT_MAX);
}

void Signal::sleep(UniqueLock& lock, const std::chrono::nanoseconds* most) {
  const uint32_t seen = count_.load();
  lock.unlock();
  sleep_while(count_, seen, most);
  lock.lock();
}

}  // namespace mtf
