// Locks that a forked child never finds taken by a thread of its parent.
//
// The word of a lock says in which process it was taken: fork_generation() differs in a child. What
// another process took is free here, since no thread is left to release it. So a lock may be in
// any object, nothing has to be done at a fork, and no fork waits for a lock. What the lock protects
// is found as it was at that moment, perhaps half changed: is_abandoned() tells.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

namespace mtf {

// How many forks lie between the process that loaded the core and this one.
unsigned fork_generation();

// False: the process has no memory for handlers of forks, and fork_generation() stays as it is.
bool watches_forks();

// Tells this thread from all others that are alive.
inline const void* this_thread() {
  static thread_local const char mark = 0;
  return &mark;
}

// For std::lock_guard and std::unique_lock. Not recursive.
class Lock {
 public:
  Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  void lock();
  bool try_lock();
  // False: another thread has held it all the time.
  bool try_lock_for(std::chrono::nanoseconds most);
  void unlock();
  // Whether another thread held it at a fork, so that what it protects may be half changed here and
  // stays so. Only for the holder.
  bool is_abandoned() const { return is_abandoned_; }

 private:
  bool lock_until(const std::chrono::steady_clock::time_point* end);  // NULL: it waits as long as it takes
  void note_holder(uint32_t seen);

  std::atomic<uint32_t> state_{0};  // the generation, and two bits of what is so in it
  bool is_abandoned_ = false;
};

using LockGuard = std::lock_guard<Lock>;
using UniqueLock = std::unique_lock<Lock>;

// A lock that is held while Python may run. Python runs signal handlers on the thread that they
// interrupt, so a handler that waited for this lock could wait for its own thread.
class CallLock : public Lock {
 public:
  void lock() {
    Lock::lock();
    holder_ = this_thread();
  }
  bool try_lock() {
    if (!Lock::try_lock()) return false;
    holder_ = this_thread();
    return true;
  }
  void unlock() {
    holder_ = nullptr;
    Lock::unlock();
  }
  bool is_held_by_this_thread() const { return holder_ == this_thread(); }

 private:
  std::atomic<const void*> holder_{nullptr};
};

using UniqueCallLock = std::unique_lock<CallLock>;

// Why a signal handler is refused the file whose call it has interrupted.
constexpr char kFileIsInterrupted[] =
    "the file is in use by a call of this thread, which a signal handler has interrupted; ";
constexpr char kUseFileLater[] = "use it when the handler has returned";

// A condition that threads wait for, as std::condition_variable.
class Signal {
 public:
  Signal() = default;
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  void notify_one();
  void notify_all();

  template <class Predicate>
  void wait(UniqueLock& lock, Predicate holds) {
    while (!holds()) sleep(lock, nullptr);
  }

  // False: the time is over, and it does not hold.
  template <class Predicate>
  bool wait_for(UniqueLock& lock, std::chrono::nanoseconds time, Predicate holds) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (!holds()) {
      const std::chrono::nanoseconds left = end - std::chrono::steady_clock::now();
      if (left.count() <= 0) return false;
      sleep(lock, &left);
    }
    return true;
  }

 private:
  void sleep(UniqueLock& lock, const std::chrono::nanoseconds* most);  // may wake for no reason

  std::atomic<uint32_t> count_{0};  // of notifications
};

}  // namespace mtf
