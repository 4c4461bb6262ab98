#include "stream.h"

#include <exception>
#include <utility>

#include "queue.h"
#include "reported.h"

namespace opencl {
namespace {

void add_foreign(SP_Stream stream, cl_event event, TF_Status* status) {
  reported(status, [&] { stream->stream.add_foreign(event); });
}

}  // namespace

Stream::Stream(std::shared_ptr<const Context> context, cl_device_id device)
    : context_(std::move(context)), queue_(make_queue(*context_, device)) {}

Stream::~Stream() {
  if (callbacks_.is_own_thread()) return;  // it cannot wait for itself: OpenCL ends the queue
  try {
    mark().wait();
  } catch (const std::exception&) {
    clFinish(queue_.get());  // no marker to be had: the plain way
  }
}

// Other queues, and pollers, may wait for a command only when it is on its way.
void Stream::flush() { check(clFlush(queue_.get()), "clFlush"); }

void Stream::collect() {
  while (!running_.empty()) {
    const cl_int status = running_.front().status();
    if (status > CL_COMPLETE) return;
    if (status < 0) failure_->set(status_code(status), "work of the stream: " + error_text(status));
    running_.pop_front();
  }
}

Mark Stream::add_marker() {
  return add("clEnqueueMarkerWithWaitList", [](cl_command_queue queue, cl_event* event) {
    return clEnqueueMarkerWithWaitList(queue, 0, nullptr, event);
  });
}

void Stream::add_barrier(cl_event awaited) {
  add("clEnqueueBarrierWithWaitList", [awaited](cl_command_queue queue, cl_event* event) {
    return clEnqueueBarrierWithWaitList(queue, 1, &awaited, event);
  });
}

Mark Stream::mark() {
  const std::lock_guard lock(mutex_);
  Mark mark = add_marker();
  flush();
  return mark;
}

void Stream::wait_for(const Mark& mark) {
  if (mark.status() == CL_COMPLETE) return;
  const std::lock_guard lock(mutex_);
  add_barrier(mark.get());
  flush();
}

void Stream::call(SE_StatusCallbackFn function, void* argument) {
  std::unique_ptr<Callback> callback(
      new Callback{function, argument, failure_, Gate(*context_)});
  const std::lock_guard lock(mutex_);
  const Mark reached = add_marker();
  add_barrier(callback->gate.event());
  flush();  // before the last step: nothing may fail once the callback is going to run
  callbacks_.run_after(reached.get(), std::move(callback));
}

void Stream::add_foreign(cl_event event) {
  check(clRetainEvent(event), "clRetainEvent");
  Mark mark(event);
  const std::lock_guard lock(mutex_);
  collect();
  running_.push_back(std::move(mark));
  flush();
}

Failure Stream::failure() {
  {
    const std::lock_guard lock(mutex_);
    collect();
  }
  return failure_->get();
}

OpenCLDeviceStream shared_part(const Context& context, cl_device_id device, const Stream& stream) {
  return {OPENCL_DEVICE_STREAM_TAG, context.get(), device, stream.queue(), add_foreign};
}

}  // namespace opencl
