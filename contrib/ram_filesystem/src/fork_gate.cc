#include "fork_gate.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace ram {
namespace {

constexpr std::chrono::microseconds kPause{50};
constexpr int kMostPauses = 100'000;  // seconds: a fork that its own call waits for goes on at last

std::atomic<int> calls{0};
std::atomic<int> forks{0};  // that wait or go on

void hold_calls() {
  ++forks;
  for (int i = 0; calls > 0 && i < kMostPauses; ++i) std::this_thread::sleep_for(kPause);
}

void let_calls_go_on() { --forks; }

// The other threads that were counted do not exist here.
void begin_in_child() {
  forks = 0;
  calls = 0;
}

}  // namespace

bool watch_forks() {
  static std::atomic<bool> are_watched{false};  // two threads may both register, which does no harm
  if (!are_watched) are_watched = pthread_atfork(hold_calls, let_calls_go_on, begin_in_child) == 0;
  return are_watched;
}

Call::Call() {
  for (++calls; forks != 0; ++calls) {
    --calls;
    while (forks != 0) std::this_thread::sleep_for(kPause);
  }
}

Call::~Call() { --calls; }

}  // namespace ram
