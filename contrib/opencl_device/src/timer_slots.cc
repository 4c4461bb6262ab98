#include "event.h"
#include "reported.h"
#include "slots.h"
#include "stream.h"

// The time between two marks, by the device's clock. OpenCL keeps what the marks need.
struct SP_Timer_st {
  opencl::Event start;
  opencl::Event stop;
};

namespace opencl {
namespace {

void create_timer(const SP_Device*, SP_Timer* timer, TF_Status* status) {
  reported(status, [&] { *timer = new SP_Timer_st(); });
}

void destroy_timer(const SP_Device*, SP_Timer timer) { delete timer; }

void start_timer(const SP_Device*, SP_Stream stream, SP_Timer timer, TF_Status* status) {
  reported(status, [&] { timer->start.set(stream->stream.mark()); });
}

void stop_timer(const SP_Device*, SP_Stream stream, SP_Timer timer, TF_Status* status) {
  reported(status, [&] { timer->stop.set(stream->stream.mark()); });
}

uint64_t between(const Mark& start, const Mark& stop) {
  start.wait();
  stop.wait();
  const cl_ulong from = start.finished_at();
  const cl_ulong to = stop.finished_at();
  return to > from ? to - from : 0;
}

// Waits until the streams have passed both ends; 0 when one was never set, or failed.
uint64_t nanoseconds(SP_Timer timer) {
  const Mark start = timer->start.mark();
  const Mark stop = timer->stop.mark();
  if (!start || !stop) return 0;
  try {
    return between(start, stop);
  } catch (const std::exception&) {
    return 0;
  }
}

}  // namespace

void fill_timer_slots(SP_StreamExecutor& executor) {
  executor.create_timer = create_timer;
  executor.destroy_timer = destroy_timer;
  executor.start_timer = start_timer;
  executor.stop_timer = stop_timer;
}

void fill_timer_fns(SP_TimerFns& fns) {
  fns.struct_size = SP_TIMER_FNS_STRUCT_SIZE;
  fns.nanoseconds = nanoseconds;
}

}  // namespace opencl
