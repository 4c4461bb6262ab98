// A stream: a queue of tasks and one thread that runs them in order. Waking the thread takes longer
// than a small copy, so what is short is done by whoever brings it to a stream without work.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "device/plugin.h"
#include "host_device/stream.h"

namespace host {

// One place in one stream, passed once. Copies are the same place; an empty one is passed. [any thread]
class Mark {
 public:
  static Mark make();
  explicit operator bool() const { return state_ != nullptr; }

  void pass() const;
  bool is_passed() const;
  void wait() const;
  void check() const {}  // what tasks do cannot fail
  SE_EventStatus status() const { return is_passed() ? SE_EVENT_COMPLETE : SE_EVENT_PENDING; }
  uint64_t passed_at() const;  // in nanoseconds; of one that is passed

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Tasks must not throw. What other libraries know comes first: they have the address alone. [any thread]
class Stream : public HostDeviceStream {
 public:
  Stream();   // throws std::system_error when no thread can be had
  ~Stream();  // runs what is queued first
  Stream(const Stream&) = delete;

  void enqueue(std::function<void()> task);

  // Passed when everything enqueued so far is done; empty when that is so already.
  Mark mark();
  // Never empty: it has a time.
  Mark timed_mark();
  // Later tasks wait for `mark`.
  void wait_for(const Mark& mark);

  void copy(void* target, const void* source, uint64_t size);
  void fill(void* target, uint8_t pattern, uint64_t size);
  void fill(void* target, uint32_t pattern, uint64_t size);

  // Runs a function of the host when all before is done. A failure stays until the stream ends; later
  // tasks run all the same.
  void call(SE_StatusCallbackFn function, void* argument);
  void check() const { failure_->check(); }

 private:
  struct Queue;

  // For a task that takes microseconds and waits for nothing: done on return if the stream is idle.
  // Nothing else starts on the stream meanwhile.
  template <class Task>
  void enqueue_short(Task task) {
    const std::unique_lock<std::mutex> idle = lock_if_idle();
    if (!idle.owns_lock()) return enqueue(std::move(task));
    task();
  }
  // `size`: of what the task writes.
  template <class Task>
  void write(uint64_t size, Task task) {
    constexpr uint64_t kShortBytes = uint64_t{64} << 10;  // takes less than waking a thread
    size > kShortBytes ? enqueue(std::move(task)) : enqueue_short(std::move(task));
  }
  std::unique_lock<std::mutex> lock_if_idle();
  static void work(const std::shared_ptr<Queue>& queue);

  const std::shared_ptr<device::FirstFailure> failure_ = std::make_shared<device::FirstFailure>();
  const std::shared_ptr<Queue> queue_;  // the thread's too: a task may destroy the stream
  std::thread worker_;
};

}  // namespace host
