#include "fork_gate.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <ctime>

namespace ram {
namespace {

using Clock = std::chrono::steady_clock;

// A fork goes on at last, since a call may hang, or wait for what the thread that forks holds.
constexpr std::chrono::milliseconds kMostWait{2000};

std::atomic<int> calls{0};
std::atomic<int> forks{0};  // that wait or go on
thread_local int own_calls = 0;  // of `calls`: this thread's

// Sleeps while `count` is `seen`, at most so long, and perhaps shorter.
void sleep_while(std::atomic<int>& count, int seen, const timespec* most) {
  syscall(SYS_futex, &count, FUTEX_WAIT_PRIVATE, seen, most, nullptr, 0);
}

void wake_all(std::atomic<int>& count) {
  syscall(SYS_futex, &count, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// Calls of other threads are waited for: one of this thread would wait for its own fork.
void hold_calls() {
  ++forks;
  const auto end = Clock::now() + kMostWait;
  for (int seen = calls; seen > own_calls; seen = calls) {
    const std::chrono::nanoseconds left = end - Clock::now();
    if (left.count() <= 0) return;
    const timespec most = {left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    sleep_while(calls, seen, &most);
  }
}

void let_calls_go_on() {
  if (--forks == 0) wake_all(forks);
}

// The other threads that were counted do not exist here.
void begin_in_child() {
  forks = 0;
  calls = own_calls;
}

void end_one() {
  --calls;
  if (forks != 0) wake_all(calls);
}

}  // namespace

bool watch_forks() {
  static std::atomic<bool> are_watched{false};  // two threads may both register, which does no harm
  if (!are_watched) are_watched = pthread_atfork(hold_calls, let_calls_go_on, begin_in_child) == 0;
  return are_watched;
}

// One within another goes on: the fork waits for the outer one.
Call::Call() {
  for (++calls; forks != 0 && own_calls == 0; ++calls) {
    end_one();
    for (int seen = forks; seen != 0; seen = forks) sleep_while(forks, seen, nullptr);
  }
  ++own_calls;
}

Call::~Call() {
  --own_calls;
  end_one();
}

}  // namespace ram
