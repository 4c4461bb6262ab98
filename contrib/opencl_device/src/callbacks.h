// Host functions that a stream runs when it gets to them, on a thread of ours: OpenCL's own
// callbacks must be short and may not wait, the host's may.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "modular_tf/device.h"
#include "opencl.h"

namespace opencl {

struct Failure {
  TF_Code code = TF_OK;
  std::string message;
};

// The first thing that went wrong on a stream. [any thread]
class FirstFailure {
 public:
  void set(TF_Code code, const std::string& message);
  Failure get() const;

 private:
  mutable std::mutex mutex_;
  Failure failure_;
};

// Holds up what waits for its event, until it goes. [any thread]
class Gate {
 public:
  explicit Gate(const Context& context);  // throws Failed
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
  std::shared_ptr<FirstFailure> failure;  // the stream's, which may be gone by then
  Gate gate;

  void run();
};

// Runs the callbacks of one stream one after the other, on a thread that the first one starts.
// [any thread]
class Callbacks {
 public:
  ~Callbacks();  // waits for all that are expected, unless one of them calls

  // Runs `callback` when `mark` is reached. Throws Failed, and then has opened the gate.
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

}  // namespace opencl
