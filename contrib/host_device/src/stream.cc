#include "stream.h"

#include <condition_variable>
#include <utility>
#include <vector>

namespace host {

void FirstFailure::set(TF_Code code, const char* message) {
  const std::lock_guard lock(mutex_);
  if (failure_.code == TF_OK) failure_ = {code, message};
}

Failure FirstFailure::get() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

struct Stream::Queue {
  std::mutex mutex;
  std::condition_variable filled;
  std::vector<std::function<void()>> tasks;
  bool working = false;  // on tasks that were taken
  bool closing = false;

  bool is_idle() const { return tasks.empty() && !working; }

  // The next tasks in order, or none when the stream ends.
  std::vector<std::function<void()>> take_all() {
    std::unique_lock lock(mutex);
    working = false;
    filled.wait(lock, [this] { return closing || !tasks.empty(); });
    working = true;
    return std::exchange(tasks, {});
  }
};

void Stream::work(const std::shared_ptr<Queue>& queue) {
  for (;;) {
    std::vector<std::function<void()>> batch = queue->take_all();
    if (batch.empty()) return;
    for (auto& task : batch) {
      task();
      task = nullptr;  // what it holds is released in order too
    }
  }
}

Stream::Stream()
    : queue_(std::make_shared<Queue>()), worker_([queue = queue_] { work(queue); }) {}

Stream::~Stream() {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->closing = true;
  }
  queue_->filled.notify_one();
  if (worker_.get_id() == std::this_thread::get_id()) {
    worker_.detach();  // nobody can wait for himself
  } else {
    worker_.join();
  }
}

void Stream::enqueue(std::function<void()> task) {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->tasks.push_back(std::move(task));
  }
  queue_->filled.notify_one();
}

std::unique_lock<std::mutex> Stream::lock_if_idle() {
  std::unique_lock lock(queue_->mutex);
  if (!queue_->is_idle()) lock.unlock();
  return lock;
}

MarkPointer Stream::mark() {
  if (lock_if_idle().owns_lock()) return passed_;
  auto mark = std::make_shared<Mark>();
  enqueue([mark] { mark->pass(); });
  return mark;
}

void Stream::wait_for(MarkPointer mark) {
  if (mark == nullptr || mark->passed()) return;
  enqueue([mark = std::move(mark)] { mark->wait(); });
}

}  // namespace host
