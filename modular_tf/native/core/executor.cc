// Executors: what is theirs, who has used it, and the questions that have no state.
#include "executor.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <new>
#include <thread>
#include <utility>

#include "executor_state.h"

namespace {

std::atomic<bool> process_ends{false};

}  // namespace

mtf_executor::~mtf_executor() { forget_users(); }

void mtf_executor::add(mtf::DeviceObject* object) {
  retain();
  const mtf::LockGuard lock(mutex_);
  mtf::DeviceObject*& head = objects_[static_cast<int>(object->kind)];
  object->next = head;
  object->link = &head;
  if (head != nullptr) head->link = &object->next;
  head = object;
  ++alive_[static_cast<int>(object->kind)];
}

void mtf_executor::take_off(mtf::DeviceObject* object) {
  *object->link = object->next;
  if (object->next != nullptr) object->next->link = object->link;
  object->link = nullptr;
  object->is_ending = true;
  ++ending_;
}

int mtf_executor::account_end(mtf::DeviceObject* object) {
  object->is_ending = false;
  --ending_;
  if (closed.load()) changed_.notify_all();  // no thread waits before
  return --alive_[static_cast<int>(object->kind)];
}

// Never waits for a thread that destroys: that one may be waiting for us, in a host callback.
int mtf_executor::end(mtf::DeviceObject* object) {
  if (is_foreign()) return -1;  // the parent's, perhaps in the middle of a change
  mtf::UniqueLock lock(mutex_);
  int left = alive_[static_cast<int>(object->kind)];
  object->is_freed = true;
  // The thread that destroys it frees it. While the executor is closed that is the closer, and not
  // before all work is done, since that may use it.
  const bool is_closers = closed.load() && object->kind != mtf::Kind::kHostMemory;
  if (object->is_ending || (is_closers && object->link != nullptr)) return left;
  if (object->link != nullptr) {
    take_off(object);
    lock.unlock();
    if (!process_ends.load()) object->destroy();
    lock.lock();
    left = account_end(object);
  }
  lock.unlock();
  delete object;
  release();
  return left;
}

int mtf_executor::count(mtf::Kind its_kind) {
  if (is_foreign()) return 0;
  const mtf::LockGuard lock(mutex_);
  return alive_[static_cast<int>(its_kind)];
}

int mtf_executor::count_held() {
  if (is_foreign()) return 0;
  const mtf::LockGuard lock(mutex_);
  int found = 0;
  for (const mtf::DeviceObject* object : objects_) {
    for (; object != nullptr; object = object->next) found += object->is_internal ? 0 : 1;
  }
  return found;
}

bool mtf_executor::add_user(mtf_executor* user) {
  const mtf::LockGuard lock(mutex_);
  if (std::find(users_.begin(), users_.end(), user) != users_.end()) return true;
  const auto ended = std::find_if(users_.begin(), users_.end(), [](mtf_executor* other) {
    return other->stage_ >= mtf::Stage::kQuiet;
  });
  if (ended != users_.end()) {
    std::exchange(*ended, user)->release();
  } else {
    try {
      users_.push_back(user);
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  user->retain();
  return true;
}

bool mtf_executor::is_used_by(const mtf_executor* other) {
  if (is_foreign()) return false;
  const mtf::LockGuard lock(mutex_);
  return std::find(users_.begin(), users_.end(), other) != users_.end();
}

void mtf_executor::forget_users() {
  std::vector<mtf_executor*> users;
  {
    const mtf::LockGuard lock(mutex_);
    users.swap(users_);
  }
  for (mtf_executor* user : users) user->release();
}

extern "C" {

mtf_executor* mtf_executor_new(const void* table, const void* device, const mtf_plugin* plugin,
                               const char* name, int32_t is_host) {
  std::unique_ptr<mtf_executor> executor(new (std::nothrow) mtf_executor);
  if (executor != nullptr) {
    executor->table = *static_cast<const SP_StreamExecutor*>(table);
    executor->allocator = mtf::executor_allocator(executor->table);
  }
  if (executor == nullptr || executor->allocator == nullptr || !mtf::watches_forks()) {
    return mtf::fail_with(mtf::make_error(TF_RESOURCE_EXHAUSTED, "no memory for an executor"));
  }
  executor->device = static_cast<const SP_Device*>(device);
  executor->plugin = plugin;
  executor->is_host = is_host != 0;
  std::snprintf(executor->name, sizeof executor->name, "%s", name);
  return executor.release();
}

mtf_error* mtf_executor_set_allocator(mtf_executor* executor, int32_t kind, const void* fns,
                                      const void* allocator, int32_t unified) {
  auto made = kind == MTF_CUSTOM_ALLOCATOR ? mtf::rfc_custom_allocator(fns, allocator)
                                           : mtf::rfc_allocator(fns, allocator, unified != 0);
  if (made == nullptr) return mtf::make_error(TF_RESOURCE_EXHAUSTED, "no memory for an allocator");
  executor->allocator = std::move(made);
  return nullptr;
}

int64_t mtf_executor_host_memories(mtf_executor* executor) {
  return executor->count(mtf::Kind::kHostMemory);
}

int64_t mtf_executor_held_objects(mtf_executor* executor) { return executor->count_held(); }

void mtf_executor_set_timer(mtf_executor* executor, void* nanoseconds) {
  executor->nanoseconds = reinterpret_cast<uint64_t (*)(SP_Timer)>(nanoseconds);
}

void mtf_executor_free(mtf_executor* executor) {
  if (executor != nullptr) executor->release();
}

void mtf_executor_refuse_calls(mtf_executor* executor) { executor->refuse_calls(); }

int mtf_executor_is_open(const mtf_executor* executor) { return executor->is_open() ? 1 : 0; }

int mtf_executor_has_ended(const mtf_executor* executor) {
  return executor->stage() == mtf::Stage::kEnded ? 1 : 0;
}

int mtf_executor_is_inherited(const mtf_executor* executor) {
  return executor->is_foreign() ? 1 : 0;
}

int mtf_executor_waits_for(mtf_executor* executor, const mtf_executor* other) {
  return executor == other || executor->device == other->device || executor->is_used_by(other);
}

void mtf_executors_process_ends(void) { process_ends = true; }

int mtf_executors_share_plugin(const mtf_executor* executor, const mtf_executor* other) {
  return executor->shares_plugin_with(other);
}

mtf_error* mtf_synchronize_all_activity(mtf_executor* executor) {
  return mtf::call_slot(executor, executor->table.synchronize_all_activity,
                        "synchronize_all_activity");
}

mtf_error* mtf_get_allocator_stats(mtf_executor* executor, mtf_allocator_stats* stats,
                                   int32_t* known) {
  SP_AllocatorStats raw = {};
  raw.struct_size = SP_ALLOCATORSTATS_STRUCT_SIZE;
  const mtf::Allocator* allocator = executor->allocator.get();
  *known = 0;
  mtf_error* error = mtf::on_slot(
      executor, allocator->has_stats() ? allocator : nullptr, "get_allocator_stats",
      [&](auto* asked, TF_Status*) { *known = asked->stats(executor->device, &raw); });
  *stats = {raw.num_allocs,
            raw.bytes_in_use,
            raw.peak_bytes_in_use,
            raw.largest_alloc_size,
            raw.has_bytes_limit != 0,
            raw.bytes_limit,
            raw.bytes_reserved,
            raw.peak_bytes_reserved,
            raw.has_bytes_reservable_limit != 0,
            raw.bytes_reservable_limit,
            raw.largest_free_block_bytes,
            0};
  return error;
}

mtf_error* mtf_device_memory_usage(mtf_executor* executor, int64_t* free_bytes,
                                   int64_t* total_bytes, int32_t* known) {
  *free_bytes = *total_bytes = *known = 0;
  const mtf::Allocator* allocator = executor->allocator.get();
  return mtf::on_slot(executor, allocator->has_usage() ? allocator : nullptr,
                      "device_memory_usage", [&](auto* asked, TF_Status*) {
                        *known = asked->usage(executor->device, free_bytes, total_bytes);
                      });
}

}  // extern "C"

namespace mtf {

Error closed_executor_error(const mtf_executor* executor) {
  if (!executor->is_foreign()) return make_closed_error("the device was closed");
  return make_closed_error("it belongs to the parent process, and a forked child cannot use it");
}

Error missing_slot_error(const char* name) {
  char message[128];
  std::snprintf(message, sizeof message, "the plugin has no %s", name);
  return make_error(TF_UNIMPLEMENTED, message);
}

void Operand::hold() {
  // What is closed, or a parent's, does no work that the end of the owner could wait for.
  if (!owner_->enter() || !user_->is_open()) {
    verdict_ = Verdict::kClosed;
  } else if (!user_->shares_plugin_with(owner_)) {
    verdict_ = Verdict::kStranger;
  } else if (!owner_->add_user(user_)) {
    verdict_ = Verdict::kNoMemory;
  }
}

Error Operand::explain() const {
  switch (verdict_) {
    case Verdict::kUsable: return nullptr;
    case Verdict::kClosed: return closed_executor_error(user_->is_open() ? owner_ : user_);
    case Verdict::kStranger:
      return make_error(TF_INVALID_ARGUMENT,
                        "the streams, events and memory of two plugins cannot be used together");
    case Verdict::kNoMemory: break;
  }
  return make_error(TF_RESOURCE_EXHAUSTED, "no memory to note which devices work together");
}

}  // namespace mtf

// The end of executors. Several may have worked with what belongs to one of them, so each step is
// done for all before the next one; and what others, which stay open, have enqueued is waited for.

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
