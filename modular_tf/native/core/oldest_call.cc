#include "oldest_call.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace mtf {

namespace {

std::atomic<uint64_t> calls{0};

}  // namespace

CallingThread::Place CallingThread::places[kPlaces];

CallingThread::CallingThread() {
  const auto own = static_cast<pid_t>(syscall(SYS_gettid));
  for (int i = 0; i < kPlaces && place_ == nullptr; ++i) {
    pid_t nobody = 0;
    if (places[i].thread.compare_exchange_strong(nobody, own)) place_ = &places[i];
  }
}

CallingThread::~CallingThread() {
  if (place_ == nullptr) return;
  end();
  place_->thread = 0;
}

void CallingThread::begin() {
  if (place_ != nullptr) place_->call.store(calls.fetch_add(1) + 1, std::memory_order_relaxed);
}

void CallingThread::end() {
  if (place_ != nullptr) place_->call.store(0, std::memory_order_relaxed);
}

pid_t thread_of_oldest_call() {
  pid_t thread = 0;
  uint64_t oldest = UINT64_MAX;
  for (const CallingThread::Place& place : CallingThread::places) {
    const uint64_t call = place.call.load(std::memory_order_relaxed);
    if (call == 0 || call >= oldest) continue;
    oldest = call;
    thread = place.thread;
  }
  return thread;
}

}  // namespace mtf
