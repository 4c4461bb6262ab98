// The end of executors. Several may have worked with what belongs to one of them, so each step is
// done for all before the next one; and what others, which stay open, have enqueued is waited for.
#include <chrono>
#include <thread>
#include <utility>

#include "executor_call.h"

namespace {

constexpr std::chrono::microseconds kBetweenLooks(50);
constexpr std::chrono::seconds kMostForAbandoned(2);

mtf::Error synchronize(mtf_executor* executor) {
  const auto slot = executor->table.synchronize_all_activity;
  if (slot == nullptr) return nullptr;
  return mtf::guarded({executor->plugin, "synchronize_all_activity", executor->name},
                      [&](TF_Status* status) { slot(executor->device, status); });
}

}  // namespace

bool mtf_executor::await_calls() {
  const auto end = std::chrono::steady_clock::now() + kMostForAbandoned;
  while (calls.load() != 0) {
    const int64_t abandoned = mtf::end_abandoned_executions(this);
    const bool is_over = std::chrono::steady_clock::now() > end;
    if (is_over && abandoned > 0 && calls.load() == abandoned) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return true;
}

mtf::Error mtf_executor::leave_all() {
  const mtf::LockGuard lock(mutex_);
  is_left = true;
  stage_ = mtf::Stage::kEnded;
  changed_.notify_all();
  return mtf::make_error(TF_DEADLINE_EXCEEDED,
                         "a kernel whose call was interrupted is not done; what it may use of the device, "
                         "such as memory, is not freed");
}

// Returns what went wrong, to one caller.
mtf::Error mtf_executor::finish_work() {
  make_quiet();
  const mtf::LockGuard lock(mutex_);
  return std::move(failure_);
}

mtf::Error mtf_executor::finish_all() {
  return table.synchronize_all_activity != nullptr ? synchronize(this) : finish_streams();
}

// No call is under way any more, and none comes: the list stays as it is.
mtf::Error mtf_executor::finish_streams() {
  const auto block = table.block_host_until_done;
  mtf::Error first;
  mtf::DeviceObject* stream = objects_[static_cast<int>(mtf::Kind::kStream)];
  for (; block != nullptr && stream != nullptr; stream = stream->next) {
    mtf::Error error =
        mtf::guarded({plugin, "block_host_until_done", name}, [&](TF_Status* status) {
          block(device, static_cast<mtf_stream*>(stream)->handle, status);
        });
    if (!first) first = std::move(error);
  }
  return first;
}

// Waits for the device's work to finish if there are streams; a second caller waits for the first.
void mtf_executor::make_quiet() {
  mtf::UniqueLock lock(mutex_);
  if (stage_ != mtf::Stage::kOpen) {
    changed_.wait(lock, [this] { return stage_ >= mtf::Stage::kQuiet; });
    return;
  }
  stage_ = mtf::Stage::kFinishing;
  const bool has_streams = alive_[static_cast<int>(mtf::Kind::kStream)] != 0;
  lock.unlock();
  mtf::Error error = has_streams ? finish_all() : nullptr;
  lock.lock();
  failure_ = std::move(error);
  stage_ = mtf::Stage::kQuiet;
  changed_.notify_all();
}

// Waits for what was enqueued so far; called by the thread that closes another executor.
void mtf_executor::await_work() {
  {
    const mtf::ExecutorUse use(this);
    if (use) return mtf::drop(synchronize(this));
  }
  // Another thread closes it, or an interrupted call has begun to.
  await_calls();
  make_quiet();
}

void mtf_executor::await_users() {
  for (size_t index = 0;; ++index) {
    mtf_executor* user = nullptr;
    {
      const mtf::LockGuard lock(mutex_);
      if (index >= users_.size()) return;
      user = users_[index];
      user->retain();
    }
    user->await_work();
    user->release();
  }
}

void mtf_executor::destroy_all() {
  mtf::UniqueLock lock(mutex_);
  for (int kind = 0; kind < static_cast<int>(mtf::Kind::kHostMemory); ++kind) {
    while (mtf::DeviceObject* object = objects_[kind]) {
      take_off(object);
      lock.unlock();
      object->destroy();
      lock.lock();
      account_end(object);
      if (!object->is_freed) continue;  // its owner frees it
      delete object;
      release();  // not the last reference: the closer has one
    }
    // Others may be destroying one: a stream that ends still uses memory.
    changed_.wait(lock, [&] { return alive_[kind] == 0; });
  }
  changed_.wait(lock, [this] { return ending_ == 0; });
  stage_ = mtf::Stage::kEnded;
  lock.unlock();
  forget_users();
}

extern "C" void mtf_executors_close(mtf_executor* const* executors, mtf_error** errors,
                                    int32_t count) {
  const auto each = [&](auto&& step) {
    for (int32_t index = 0; index < count; ++index) {
      if (!executors[index]->is_foreign()) step(executors[index], &errors[index]);
    }
  };
  for (int32_t index = 0; index < count; ++index) {
    errors[index] = nullptr;
    executors[index]->refuse_calls();
  }
  each([](mtf_executor* executor, mtf_error** error) {
    if (!executor->await_calls()) *error = executor->leave_all();
  });
  // `calls` does not tell which those are: calls that are refused count for a moment.
  const auto each_other = [&](auto&& step) {
    each([&](mtf_executor* executor, mtf_error** error) {
      if (!executor->is_left) step(executor, error);
    });
  };
  each_other([](mtf_executor* executor, mtf_error** error) { *error = executor->finish_work(); });
  each_other([](mtf_executor* executor, mtf_error**) { executor->await_users(); });
  each_other([](mtf_executor* executor, mtf_error**) { executor->destroy_all(); });
}
