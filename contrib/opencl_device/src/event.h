// OpenCL events: marks in streams, and the slots' events that point at them.
#pragma once

#include <mutex>

#include "opencl.h"

namespace opencl {

// One command's completion. Empty: there is nothing to wait for.
class Mark : public Handle<cl_event, clRetainEvent, clReleaseEvent> {
 public:
  using Handle::Handle;

  // CL_COMPLETE, a positive number before that, a negative one after a failure.
  cl_int status() const;

  // Waits for the end, be it good or bad.
  void wait() const;

  // When the device had finished the command, by its clock in nanoseconds.
  cl_ulong finished_at() const;
};

// Points at the mark that it was last recorded as. Recording it again leaves those alone who wait
// for the earlier mark, and destroying it nobody. [any thread]
class Event {
 public:
  void set(Mark mark);
  Mark mark() const;  // empty: never recorded

 private:
  mutable std::mutex mutex_;
  Mark mark_;
};

}  // namespace opencl

struct SP_Event_st {
  opencl::Event event;
};
