// Which thread of a worker is in its call for the longest time: the one to ask where the worker hangs.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace mtf {

// The place of a thread that makes calls, one after the other. Where all places are taken, its calls
// are not noted.
class CallingThread {
 public:
  CallingThread() {
    const auto own = static_cast<pid_t>(syscall(SYS_gettid));
    for (int i = 0; i < kPlaces && place_ == nullptr; ++i) {
      pid_t nobody = 0;
      if (places[i].thread.compare_exchange_strong(nobody, own)) place_ = &places[i];
    }
  }
  ~CallingThread() {
    if (place_ == nullptr) return;
    end();
    place_->thread = 0;
  }
  CallingThread(const CallingThread&) = delete;
  CallingThread& operator=(const CallingThread&) = delete;

  void begin() {
    if (place_ != nullptr) place_->call.store(calls.fetch_add(1) + 1, std::memory_order_relaxed);
  }
  void end() {
    if (place_ != nullptr) place_->call.store(0, std::memory_order_relaxed);
  }

 private:
  struct Place {
    std::atomic<pid_t> thread;  // 0: none, as all static storage begins
    std::atomic<uint64_t> call;  // the lower, the older; 0: none
  };
  static constexpr int kPlaces = 64;
  inline static Place places[kPlaces];
  inline static std::atomic<uint64_t> calls{0};
  Place* place_ = nullptr;

  friend pid_t thread_of_oldest_call();
};

// The kernel's number of the thread; 0: none is in a call. [signal handlers]
inline pid_t thread_of_oldest_call() {
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
