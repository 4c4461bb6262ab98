#include "event.h"

#include "cl_error.h"

namespace opencl {

cl_int Mark::status() const {
  if (!*this) return CL_COMPLETE;
  cl_int status = CL_COMPLETE;
  check(clGetEventInfo(get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr),
        "clGetEventInfo");
  return status;
}

void Mark::wait() const {
  if (!*this) return;
  const cl_event event = get();
  const cl_int waited = clWaitForEvents(1, &event);
  if (waited != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) check(waited, "clWaitForEvents");
}

cl_ulong Mark::finished_at() const {
  cl_ulong time = 0;
  check(clGetEventProfilingInfo(get(), CL_PROFILING_COMMAND_END, sizeof(time), &time, nullptr),
        "clGetEventProfilingInfo");
  return time;
}

void Event::set(Mark mark) {
  const std::lock_guard lock(mutex_);
  mark_ = std::move(mark);
}

Mark Event::mark() const {
  const std::lock_guard lock(mutex_);
  return mark_;
}

}  // namespace opencl
