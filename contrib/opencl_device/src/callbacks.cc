#include "callbacks.h"

#include <utility>

#include "cl_error.h"

namespace opencl {

void FirstFailure::set(TF_Code code, const std::string& message) {
  const std::lock_guard lock(mutex_);
  if (failure_.code == TF_OK) failure_ = {code, message};
}

Failure FirstFailure::get() const {
  const std::lock_guard lock(mutex_);
  return failure_;
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

void Callback::run() {
  TF_Status* status = TF_NewStatus();
  function(argument, status);
  if (TF_GetCode(status) != TF_OK) failure->set(TF_GetCode(status), TF_Message(status));
  TF_DeleteStatus(status);
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
  while (std::unique_ptr<Callback> callback = arrivals->take()) callback->run();
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

}  // namespace opencl
