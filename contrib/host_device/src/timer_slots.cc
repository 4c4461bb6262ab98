#include <chrono>
#include <memory>

#include "event.h"
#include "reported.h"
#include "slots.h"
#include "stream.h"

namespace host {
namespace {

using Clock = std::chrono::steady_clock;

// The times are written by streams and read after the mark behind the write has been passed.
struct Timer {
  Clock::time_point started;
  Clock::time_point stopped;
  Event start;
  Event stop;
};

}  // namespace
}  // namespace host

// Shared with the streams that have yet to write into it, so that it may be destroyed early.
struct SP_Timer_st {
  std::shared_ptr<host::Timer> timer = std::make_shared<host::Timer>();
};

namespace host {
namespace {

void create_timer(const SP_Device*, SP_Timer* timer, TF_Status* status) {
  reported(status, [&] { *timer = new SP_Timer_st(); });
}

void destroy_timer(const SP_Device*, SP_Timer timer) { delete timer; }

void start_timer(const SP_Device*, SP_Stream stream, SP_Timer timer, TF_Status* status) {
  reported(status, [&] {
    stream->stream.enqueue_short([timer = timer->timer] { timer->started = Clock::now(); });
    timer->timer->start.set(stream->stream.mark());
  });
}

void stop_timer(const SP_Device*, SP_Stream stream, SP_Timer timer, TF_Status* status) {
  reported(status, [&] {
    stream->stream.enqueue_short([timer = timer->timer] { timer->stopped = Clock::now(); });
    timer->timer->stop.set(stream->stream.mark());
  });
}

// Waits until the streams have passed both ends; 0 when one was never set.
uint64_t nanoseconds(SP_Timer handle) {
  const Timer& timer = *handle->timer;
  const MarkPointer start = timer.start.mark();
  const MarkPointer stop = timer.stop.mark();
  if (start == nullptr || stop == nullptr) return 0;
  start->wait();
  stop->wait();
  const auto took = std::chrono::nanoseconds(timer.stopped - timer.started).count();
  return took > 0 ? static_cast<uint64_t>(took) : 0;
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

}  // namespace host
