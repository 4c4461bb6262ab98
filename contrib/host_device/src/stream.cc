#include "stream.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <vector>

namespace host {
namespace {

void wait_for_stream(SP_Stream stream, TF_Status* status) {
  device::reported(status, [&] { reinterpret_cast<Stream*>(stream)->mark().wait(); });
}

}  // namespace

struct Mark::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_passed = false;
  std::chrono::steady_clock::time_point time;
};

Mark Mark::make() {
  Mark made;
  made.state_ = std::make_shared<State>();
  return made;
}

void Mark::pass() const {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_passed = true;
    state_->time = std::chrono::steady_clock::now();
  }
  state_->changed.notify_all();
}

bool Mark::is_passed() const {
  if (state_ == nullptr) return true;
  const std::lock_guard lock(state_->mutex);
  return state_->is_passed;
}

void Mark::wait() const {
  if (state_ == nullptr) return;
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->is_passed; });
}

uint64_t Mark::passed_at() const {
  const std::lock_guard lock(state_->mutex);
  return static_cast<uint64_t>(std::chrono::nanoseconds(state_->time.time_since_epoch()).count());
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
    : HostDeviceStream{HOST_DEVICE_STREAM_TAG, wait_for_stream},
      queue_(std::make_shared<Queue>()),
      worker_([queue = queue_] { work(queue); }) {}

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

Mark Stream::mark() {
  if (lock_if_idle().owns_lock()) return {};
  const Mark mark = Mark::make();
  enqueue([mark] { mark.pass(); });
  return mark;
}

Mark Stream::timed_mark() {
  const Mark mark = Mark::make();
  enqueue_short([mark] { mark.pass(); });
  return mark;
}

void Stream::wait_for(const Mark& mark) {
  if (mark.is_passed()) return;
  enqueue([mark] { mark.wait(); });
}

// Copies within one allocation may overlap.
void Stream::copy(void* target, const void* source, uint64_t size) {
  write(size, [=] { std::memmove(target, source, size); });
}

void Stream::fill(void* target, uint8_t pattern, uint64_t size) {
  write(size, [=] { std::memset(target, pattern, size); });
}

// The address need not be a multiple of four.
void Stream::fill(void* target, uint32_t pattern, uint64_t size) {
  if (size % sizeof(pattern) != 0) {
    throw device::Failed(TF_INVALID_ARGUMENT, "memset32: size is no multiple of 4");
  }
  write(size, [=] {
    for (uint64_t at = 0; at < size; at += sizeof(pattern)) {
      std::memcpy(static_cast<char*>(target) + at, &pattern, sizeof(pattern));
    }
  });
}

void Stream::call(SE_StatusCallbackFn function, void* argument) {
  enqueue([failure = failure_, function, argument] { failure->run(function, argument); });
}

}  // namespace host
