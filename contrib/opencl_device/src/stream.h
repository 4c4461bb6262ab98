// A stream: an in-order command queue, what became of the commands in it, and the host functions that run
// between them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "device/plugin.h"
#include "opencl.h"
#include "opencl_device/stream.h"

namespace opencl {

// One command's completion. Empty: there is nothing to wait for.
class Mark : public Handle<cl_event, clRetainEvent, clReleaseEvent> {
 public:
  using Handle::Handle;

  // CL_COMPLETE, a positive number before that, a negative one after a failure.
  cl_int execution() const;
  SE_EventStatus status() const;
  // Waits for the end, be it good or bad.
  void wait() const;
  // Throws device::Failed where the command has failed.
  void check() const;
  // When the device had finished the command, by its clock in nanoseconds.
  uint64_t passed_at() const;
};

// -- host functions that a stream runs when it gets to them, on a thread of ours: OpenCL's own callbacks
// must be short and may not wait, the host's may --

// Holds up what waits for its event, until it goes. [any thread]
class Gate {
 public:
  explicit Gate(const Context& context);  // throws device::Failed
  Gate(const Gate&) = delete;
  ~Gate();

  cl_event event() const { return event_; }

 private:
  cl_event event_ = nullptr;
};

// One call that the host asked for; its end opens the gate for the work behind it.
struct Callback {
  SE_StatusCallbackFn function;
  void* argument;
  std::shared_ptr<device::FirstFailure> failure;  // the stream's, which may be gone by then
  Gate gate;
};

// Runs the callbacks of one stream one after the other, on a thread that the first one starts.
// [any thread]
class Callbacks {
 public:
  ~Callbacks();  // waits for all that are expected, unless one of them calls

  // Runs `callback` when `mark` is reached. Throws device::Failed, and then has opened the gate.
  void run_after(cl_event mark, std::unique_ptr<Callback> callback);

  bool is_own_thread() const;

 private:
  struct Arrivals;
  struct Arrival;
  static void CL_CALLBACK arrived(cl_event event, cl_int status, void* arrival);
  static void work(const std::shared_ptr<Arrivals>& arrivals);
  void start();

  std::mutex starting_;
  std::shared_ptr<Arrivals> arrivals_;  // the thread's too: it may outlive the stream
  std::thread worker_;
};

// -- streams --

// All that enqueue throw device::Failed. What other libraries know comes first: they have the address
// alone. [any thread]
class Stream : public OpenCLDeviceStream {
 public:
  Stream(std::shared_ptr<const Context> context, cl_device_id device);
  Stream(const Stream&) = delete;
  ~Stream();  // runs what is queued first

  void copy(void* target, const void* source, uint64_t size);
  // The address and the size must be multiples of the pattern's size: OpenCL checks.
  template <class Pattern>
  void fill(void* target, Pattern pattern, uint64_t size) {
    enqueue("clEnqueueSVMMemFill", [&](cl_command_queue to, cl_event* event) {
      return clEnqueueSVMMemFill(to, target, &pattern, sizeof(pattern), size, 0, nullptr, event);
    });
  }

  // For a command that others have enqueued in the queue.
  void add_foreign(cl_event event);

  // Reached when everything enqueued so far is done.
  Mark mark();
  Mark timed_mark() { return mark(); }

  // Later commands wait for `mark`; an empty one is none to wait for.
  void wait_for(const Mark& mark);

  // Runs a function of the host when all before is done; later commands wait for its end.
  void call(SE_StatusCallbackFn function, void* argument);

  // Throws the first failure of a command or of a callback. It stays until the stream ends; what later
  // commands do after the failure of another one is the driver's choice.
  void check();

 private:
  // Enqueues `command(queue, &event)`, an OpenCL function by the name `function`.
  template <class Command>
  void enqueue(const char* function, Command&& command) {
    const std::lock_guard lock(mutex_);
    add_command(function, command);
    flush();
  }

  // All with the lock held.
  template <class Command>
  Mark add_command(const char* function, Command&& command) {
    collect();
    cl_event event = nullptr;
    opencl::check(command(queue_.get(), &event), function);
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
  const std::shared_ptr<device::FirstFailure> failure_ =
      std::make_shared<device::FirstFailure>();
  std::mutex mutex_;
  std::deque<Mark> running_;  // in order; those at the front may be done
  Callbacks callbacks_;
};

}  // namespace opencl
