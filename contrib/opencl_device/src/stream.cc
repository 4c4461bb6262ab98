#include "stream.h"

#include <exception>
#include <utility>

namespace opencl {
namespace {

void add_foreign(SP_Stream stream, cl_event event, TF_Status* status) {
  device::reported(status, [&] { reinterpret_cast<Stream*>(stream)->add_foreign(event); });
}

}  // namespace

cl_int Mark::execution() const {
  if (!*this) return CL_COMPLETE;
  cl_int status = CL_COMPLETE;
  opencl::check(
      clGetEventInfo(get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr),
      "clGetEventInfo");
  return status;
}

SE_EventStatus Mark::status() const {
  const cl_int status = execution();
  if (status < 0) return SE_EVENT_ERROR;
  return status == CL_COMPLETE ? SE_EVENT_COMPLETE : SE_EVENT_PENDING;
}

void Mark::check() const { opencl::check(execution(), "the work before the event"); }

void Mark::wait() const {
  if (!*this) return;
  const cl_event event = get();
  const cl_int waited = clWaitForEvents(1, &event);
  if (waited != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) opencl::check(waited, "clWaitForEvents");
}

uint64_t Mark::passed_at() const {
  cl_ulong time = 0;
  opencl::check(
      clGetEventProfilingInfo(get(), CL_PROFILING_COMMAND_END, sizeof(time), &time, nullptr),
      "clGetEventProfilingInfo");
  return time;
}

Gate::Gate(const Context& context) {
  cl_int error = CL_SUCCESS;
  event_ = clCreateUserEvent(context.get(), &error);
  check(error, "clCreateUserEvent");
}

Gate::~Gate() {
  if (event_ == nullptr) return;
  clSetUserEventStatus(event_, CL_COMPLETE);
  clReleaseEvent(event_);
}

struct Callbacks::Arrivals {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::unique_ptr<Callback>> ready;
  size_t expected = 0;  // announced and not yet taken
  bool closing = false;

  // Room for one more, so that its arrival cannot fail.
  void announce() {
    const std::lock_guard lock(mutex);
    ready.reserve(expected + 1);
    ++expected;
  }

  void add(std::unique_ptr<Callback> callback) {
    {
      const std::lock_guard lock(mutex);
      if (callback == nullptr) {
        --expected;
      } else {
        ready.push_back(std::move(callback));
      }
    }
    changed.notify_one();
  }

  // The next one, or NULL when none will come any more.
  std::unique_ptr<Callback> take() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return !ready.empty() || (closing && expected == 0); });
    if (ready.empty()) return nullptr;
    std::unique_ptr<Callback> callback = std::move(ready.front());
    ready.erase(ready.begin());
    --expected;
    return callback;
  }
};

struct Callbacks::Arrival {
  std::shared_ptr<Arrivals> arrivals;
  std::unique_ptr<Callback> callback;
};

Callbacks::~Callbacks() {
  if (arrivals_ == nullptr) return;
  {
    const std::lock_guard lock(arrivals_->mutex);
    arrivals_->closing = true;
  }
  arrivals_->changed.notify_one();
  if (is_own_thread()) {
    worker_.detach();  // nobody can wait for himself
  } else {
    worker_.join();
  }
}

bool Callbacks::is_own_thread() const { return worker_.get_id() == std::this_thread::get_id(); }

void Callbacks::start() {
  const std::lock_guard lock(starting_);
  if (arrivals_ != nullptr) return;
  auto arrivals = std::make_shared<Arrivals>();
  worker_ = std::thread([arrivals] { work(arrivals); });
  arrivals_ = std::move(arrivals);
}

void Callbacks::work(const std::shared_ptr<Arrivals>& arrivals) {
  while (const std::unique_ptr<Callback> callback = arrivals->take()) {
    callback->failure->run(callback->function, callback->argument);
  }
}

// On a thread of the driver, or at once on the caller's. A failure of the work before is the
// stream's affair: the host relies on its function being run.
void CL_CALLBACK Callbacks::arrived(cl_event, cl_int, void* arrival) {
  const std::unique_ptr<Arrival> owned(static_cast<Arrival*>(arrival));
  owned->arrivals->add(std::move(owned->callback));
}

void Callbacks::run_after(cl_event mark, std::unique_ptr<Callback> callback) {
  start();
  auto arrival = std::make_unique<Arrival>(Arrival{arrivals_, std::move(callback)});
  arrivals_->announce();
  const cl_int error = clSetEventCallback(mark, CL_COMPLETE, arrived, arrival.get());
  if (error == CL_SUCCESS) {
    arrival.release();  // `arrived` owns it, and may have freed it by now
    return;
  }
  arrivals_->add(nullptr);
  check(error, "clSetEventCallback");
}

Stream::Stream(std::shared_ptr<const Context> context, cl_device_id device)
    : OpenCLDeviceStream{},
      context_(std::move(context)),
      queue_(make_queue(*context_, device)) {
  static_cast<OpenCLDeviceStream&>(*this) = {OPENCL_DEVICE_STREAM_TAG, context_->get(), device,
                                             queue_.get(), opencl::add_foreign};
}

Stream::~Stream() {
  if (callbacks_.is_own_thread()) return;  // it cannot wait for itself: OpenCL ends the queue
  try {
    mark().wait();
  } catch (const std::exception&) {
    clFinish(queue_.get());  // no marker to be had: the plain way
  }
}

// Other queues, and pollers, may wait for a command only when it is on its way.
void Stream::flush() { opencl::check(clFlush(queue_.get()), "clFlush"); }

void Stream::collect() {
  while (!running_.empty()) {
    const cl_int status = running_.front().execution();
    if (status > CL_COMPLETE) return;
    if (status < 0) failure_->set(status_code(status), "work of the stream: " + error_text(status));
    running_.pop_front();
  }
}

Mark Stream::add_marker() {
  return add_command("clEnqueueMarkerWithWaitList", [](cl_command_queue to, cl_event* event) {
    return clEnqueueMarkerWithWaitList(to, 0, nullptr, event);
  });
}

void Stream::add_barrier(cl_event awaited) {
  add_command("clEnqueueBarrierWithWaitList", [awaited](cl_command_queue to, cl_event* event) {
    return clEnqueueBarrierWithWaitList(to, 1, &awaited, event);
  });
}

Mark Stream::mark() {
  const std::lock_guard lock(mutex_);
  Mark mark = add_marker();
  flush();
  return mark;
}

void Stream::wait_for(const Mark& mark) {
  if (mark.execution() == CL_COMPLETE) return;
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
  opencl::check(clRetainEvent(event), "clRetainEvent");
  Mark mark(event);
  const std::lock_guard lock(mutex_);
  collect();
  running_.push_back(std::move(mark));
  flush();
}

void Stream::check() {
  {
    const std::lock_guard lock(mutex_);
    collect();
  }
  failure_->check();
}

void Stream::copy(void* target, const void* source, uint64_t size) {
  enqueue("clEnqueueSVMMemcpy", [=](cl_command_queue to, cl_event* event) {
    return clEnqueueSVMMemcpy(to, CL_FALSE, target, source, size, 0, nullptr, event);
  });
}

}  // namespace opencl
