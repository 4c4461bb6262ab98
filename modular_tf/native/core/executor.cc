// Executors: who may call, and how what is left is destroyed.
#include "executor.h"

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include "executor_state.h"

namespace mtf {
namespace {

std::atomic<bool> process_ends{false};
thread_local mtf_error* kept_error = nullptr;

constexpr std::chrono::microseconds kBetweenLooks(50);

}  // namespace

mtf_error* closed_executor_error() {
  mtf_error* error = make_error(9, "the device was closed");
  if (error->code == 9) error->closed = 1;  // not where memory ran out and the error is shared
  return error;
}

mtf_error* missing_slot_error(const char* name) {
  char message[128];
  std::snprintf(message, sizeof message, "the plugin has no %s", name);
  return make_error(12, message);
}

mtf_error* stranger_error(const mtf_executor* executor, const DeviceObject* other) {
  if (executor == other->owner) return nullptr;
  if (other->owner->closed.load()) return closed_executor_error();
  if (executor->shares_plugin_with(other->owner)) return nullptr;
  return make_error(3, "the streams, events and memory of two plugins cannot be used together");
}

std::nullptr_t fail_with(mtf_error* error) {
  mtf_error_free(kept_error);
  kept_error = error;
  return nullptr;
}

}  // namespace mtf

bool mtf_executor::enter() {
  calls.fetch_add(1);
  return !closed.load() && !is_foreign();
}

void mtf_executor::add(mtf::DeviceObject* object) {
  retain();
  const mtf::LockGuard lock(mutex);
  mtf::DeviceObject*& head = objects[static_cast<int>(object->kind)];
  object->next = head;
  object->link = &head;
  if (head != nullptr) head->link = &object->next;
  head = object;
}

void mtf_executor::take_off(mtf::DeviceObject* object) {
  *object->link = object->next;
  if (object->next != nullptr) object->next->link = object->link;
  object->link = nullptr;
  object->is_ending = true;
  ++ending;
}

bool mtf_executor::finish(mtf::DeviceObject* object) {
  const mtf::LockGuard lock(mutex);
  object->is_ending = false;
  if (--ending == 0) all_ended.notify_all();
  return object->is_freed;
}

// Never waits for a thread that destroys: that one may be waiting for us, in a host callback.
void mtf_executor::end(mtf::DeviceObject* object) {
  if (is_foreign()) return;  // the parent's; the lock may be held by a thread that is not here
  bool is_listed = false;
  {
    const mtf::LockGuard lock(mutex);
    object->is_freed = true;
    if (object->is_ending) return;  // whoever destroys it frees it
    is_listed = object->link != nullptr;
    if (is_listed) take_off(object);
  }
  if (is_listed) {
    if (!mtf::process_ends.load()) object->destroy();
    finish(object);
  }
  delete object;
  release();
}

int mtf_executor::count(mtf::Kind its_kind) {
  const mtf::LockGuard lock(mutex);
  int found = 0;
  const mtf::DeviceObject* object = objects[static_cast<int>(its_kind)];
  for (; object != nullptr; object = object->next) ++found;
  return found;
}

int mtf_executor::count_held() {
  const mtf::LockGuard lock(mutex);
  int found = 0;
  for (const mtf::DeviceObject* object : objects) {
    for (; object != nullptr; object = object->next) found += object->is_region ? 0 : 1;
  }
  return found;
}

void mtf_executor::destroy_all() {
  mtf::UniqueLock lock(mutex);
  for (int kind = 0; kind < static_cast<int>(mtf::Kind::kHostMemory); ++kind) {
    mtf::DeviceObject*& head = objects[kind];
    while (head != nullptr) {
      mtf::DeviceObject* object = head;
      take_off(object);
      lock.unlock();
      object->destroy();
      if (finish(object)) {
        delete object;
        release();  // not the last reference: the closer has one
      }
      lock.lock();
    }
  }
  all_ended.wait(lock, [this] { return ending == 0; });
}

extern "C" {

mtf_error* mtf_take_error(void) {
  mtf_error* error = mtf::kept_error;
  mtf::kept_error = nullptr;
  return error;
}

mtf_executor* mtf_executor_new(const void* table, const void* device) {
  auto* executor = new (std::nothrow) mtf_executor;
  if (executor == nullptr || !mtf::watches_forks()) {
    delete executor;
    return mtf::fail_with(mtf::make_error(8, "no memory for an executor"));
  }
  executor->table = *static_cast<const SP_StreamExecutor*>(table);
  executor->allocator = mtf::executor_allocator(executor->table);
  if (executor->allocator == nullptr) {
    delete executor;
    return mtf::fail_with(mtf::make_error(8, "no memory for an executor"));
  }
  executor->device = static_cast<const SP_Device*>(device);
  return executor;
}

mtf_error* mtf_executor_close(mtf_executor* executor) {
  if (executor->closed.exchange(true) || executor->is_foreign()) return nullptr;
  while (executor->calls.load() != 0) std::this_thread::sleep_for(mtf::kBetweenLooks);
  mtf_error* error = nullptr;
  const auto synchronize = executor->table.synchronize_all_activity;
  if (executor->count(mtf::Kind::kStream) != 0 && synchronize != nullptr) {
    error = mtf::guarded([&](TF_Status* status) { synchronize(executor->device, status); });
  }
  executor->destroy_all();
  return error;
}

mtf_error* mtf_executor_set_allocator(mtf_executor* executor, int32_t kind, const void* fns,
                                      const void* allocator, int32_t unified) {
  auto made = kind == MTF_CUSTOM_ALLOCATOR ? mtf::rfc_custom_allocator(fns, allocator)
                                           : mtf::rfc_allocator(fns, allocator, unified != 0);
  if (made == nullptr) return mtf::make_error(8, "no memory for an allocator");
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

void mtf_executors_process_ends(void) { mtf::process_ends = true; }

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
            raw.largest_free_block_bytes};
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
