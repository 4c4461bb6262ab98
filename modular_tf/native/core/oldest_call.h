// Which thread of a worker is in its call for the longest time: the one to ask where the worker hangs.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace mtf {

// The place of a thread that makes calls, one after the other. Where all places are taken, its calls
// are not noted.
class CallingThread {
 public:
  CallingThread();
  ~CallingThread();
  CallingThread(const CallingThread&) = delete;
  CallingThread& operator=(const CallingThread&) = delete;

  void begin();
  void end();

 private:
  struct Place {
    std::atomic<pid_t> thread{0};
    std::atomic<uint64_t> call{0};  // the lower, the older; 0: none
  };
  static constexpr int kPlaces = 64;
  static Place places[kPlaces];
  Place* place_ = nullptr;

  friend pid_t thread_of_oldest_call();
};

// The kernel's number of the thread; 0: none is in a call. [signal handlers]
pid_t thread_of_oldest_call();

}  // namespace mtf
