// A stream: an in-order command queue, and what became of the commands in it.
#pragma once

#include <deque>
#include <memory>
#include <mutex>

#include "callbacks.h"
#include "cl_error.h"
#include "event.h"
#include "opencl.h"
#include "opencl_device/stream.h"

namespace opencl {

// [any thread]. All that enqueue throw Failed.
class Stream {
 public:
  Stream(std::shared_ptr<const Context> context, cl_device_id device);
  Stream(const Stream&) = delete;
  ~Stream();  // runs what is queued first

  // Enqueues `command(queue, &event)`, an OpenCL function by the name `function`.
  template <class Command>
  void enqueue(const char* function, Command&& command) {
    const std::lock_guard lock(mutex_);
    add(function, command);
    flush();
  }

  // For commands that others have enqueued in the queue.
  cl_command_queue queue() const { return queue_.get(); }
  void add_foreign(cl_event event);

  // Reached when everything enqueued so far is done.
  Mark mark();

  // Later commands wait for `mark`; an empty one is none to wait for.
  void wait_for(const Mark& mark);

  // Runs a function of the host when all before is done; later commands wait for its end.
  void call(SE_StatusCallbackFn function, void* argument);

  // The first failure of a command or of a callback. It stays until the stream ends; what later
  // commands do after the failure of another one is the driver's choice.
  Failure failure();

 private:
  // All with the lock held.
  template <class Command>
  Mark add(const char* function, Command&& command) {
    collect();
    cl_event event = nullptr;
    check(command(queue_.get(), &event), function);
    Mark mark(event);
    running_.push_back(mark);
    return mark;
  }
  Mark add_marker();
  void add_barrier(cl_event event);
  void collect();
  void flush();

  const std::shared_ptr<const Context> context_;
  const Queue queue_;
  const std::shared_ptr<FirstFailure> failure_ = std::make_shared<FirstFailure>();
  std::mutex mutex_;
  std::deque<Mark> running_;  // in order; those at the front may be done
  Callbacks callbacks_;
};

}  // namespace opencl

namespace opencl {
// What other libraries know of a stream.
OpenCLDeviceStream shared_part(const Context& context, cl_device_id device, const Stream& stream);
}  // namespace opencl

// What other libraries know comes first: they have the address alone.
struct SP_Stream_st : OpenCLDeviceStream {
  SP_Stream_st(const std::shared_ptr<const opencl::Context>& context, cl_device_id device)
      : OpenCLDeviceStream{}, stream(context, device) {
    static_cast<OpenCLDeviceStream&>(*this) = opencl::shared_part(*context, device, stream);
  }
  opencl::Stream stream;
};
