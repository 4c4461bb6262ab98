// A stream: a queue of tasks and one thread that runs them in order. Waking the thread takes longer
// than a small copy, so what is short is done by whoever brings it to a stream without work.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "event.h"
#include "host_device/stream.h"
#include "modular_tf/status.h"

namespace host {

struct Failure {
  TF_Code code = TF_OK;
  std::string message;
};

// The first thing that went wrong on a stream. [any thread]
class FirstFailure {
 public:
  void set(TF_Code code, const char* message);
  Failure get() const;

 private:
  mutable std::mutex mutex_;
  Failure failure_;
};

// [any thread]; tasks must not throw.
class Stream {
 public:
  Stream();   // throws std::system_error when no thread can be had
  ~Stream();  // runs what is queued first

  void enqueue(std::function<void()> task);

  // For a task that takes microseconds and waits for nothing: done on return if the stream is idle.
  // Nothing else starts on the stream meanwhile.
  template <class Task>
  void enqueue_short(Task task) {
    const std::unique_lock<std::mutex> idle = lock_if_idle();
    if (!idle.owns_lock()) return enqueue(std::move(task));
    task();
  }

  // Passed when everything enqueued so far is done.
  MarkPointer mark();

  // Later tasks wait for `mark`; NULL is no mark to wait for.
  void wait_for(MarkPointer mark);

  // A failure stays until the stream ends; later tasks run all the same. Shared, since a callback
  // may destroy the very stream that it runs on and report a failure after that.
  std::shared_ptr<FirstFailure> failure() const { return failure_; }

 private:
  struct Queue;
  std::unique_lock<std::mutex> lock_if_idle();
  static void work(const std::shared_ptr<Queue>& queue);

  const std::shared_ptr<FirstFailure> failure_ = std::make_shared<FirstFailure>();
  const MarkPointer passed_ = passed_mark();
  const std::shared_ptr<Queue> queue_;  // the thread's too, for the same reason
  std::thread worker_;
};

}  // namespace host

// For kernels in other libraries: SP_Stream_st::stream's waiting.
namespace host {
void wait_for_stream(SP_Stream stream, TF_Status* status);
}

// What other libraries know comes first: they have the address alone.
struct SP_Stream_st : HostDeviceStream {
  SP_Stream_st() : HostDeviceStream{HOST_DEVICE_STREAM_TAG, host::wait_for_stream} {}
  host::Stream stream;
};
