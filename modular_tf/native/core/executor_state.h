// What is behind an executor: the plugin's table, the calls that run, the objects that are alive.
#ifndef MODULAR_TF_CORE_EXECUTOR_STATE_H_
#define MODULAR_TF_CORE_EXECUTOR_STATE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>

#include "arena.h"
#include "executor.h"
#include "executor_allocator.h"
#include "fork_lock.h"
#include "guard.h"
#include "modular_tf/device.h"

namespace mtf {

// The order in which what is left is destroyed. Memory that the host may be looking at comes last:
// it stays until its owner frees it.
enum class Kind { kTimer, kEvent, kStream, kMemory, kHostMemory, kKinds };

// Something that the plugin made, in the list of its executor until it is destroyed.
struct DeviceObject {
  DeviceObject(mtf_executor* executor, Kind its_kind) : owner(executor), kind(its_kind) {}
  DeviceObject(const DeviceObject&) = delete;
  DeviceObject& operator=(const DeviceObject&) = delete;
  virtual ~DeviceObject() = default;
  virtual void destroy() = 0;  // calls the plugin

  mtf_executor* const owner;
  const Kind kind;
  DeviceObject* next = nullptr;
  DeviceObject** link = nullptr;  // what points here; NULL when not listed
  bool is_ending = false;         // taken off the list and not destroyed yet
  bool is_freed = false;          // by its owner, while that lasted
  bool is_region = false;         // what an arena cuts, which no user holds
};

mtf_error* closed_executor_error();
mtf_error* missing_slot_error(const char* name);

}  // namespace mtf

struct mtf_executor {
  SP_StreamExecutor table = {};
  std::unique_ptr<mtf::Allocator> allocator;
  const SP_Device* device = nullptr;
  std::atomic<uint64_t (*)(SP_Timer)> nanoseconds{nullptr};
  const unsigned generation = mtf::fork_generation();  // objects of another belong to the parent

  std::atomic<int64_t> calls{0};
  std::atomic<bool> closed{false};
  std::atomic<int> references{1};
  mtf::Lock mutex;  // of the lists
  mtf::Signal all_ended;
  mtf::DeviceObject* objects[static_cast<int>(mtf::Kind::kKinds)] = {};
  int ending = 0;  // objects that left their list and are being destroyed

  bool is_foreign() const { return generation != mtf::fork_generation(); }
  bool enter();  // whether plugin calls are allowed; leave() follows in any case
  void leave() { calls.fetch_sub(1); }
  void add(mtf::DeviceObject* object);
  void end(mtf::DeviceObject* object);  // destroys it unless that has been done, and frees it
  void destroy_all();
  void retain() { references.fetch_add(1); }
  void release() {
    if (references.fetch_sub(1) == 1) delete this;
  }
  int count(mtf::Kind its_kind);
  int count_held();  // of all kinds, without regions of arenas
  // Devices of one plugin may use each other's streams, events and memory.
  bool shares_plugin_with(const mtf_executor* other) const {
    return table.create_stream == other->table.create_stream;
  }

 private:
  void take_off(mtf::DeviceObject* object);
  bool finish(mtf::DeviceObject* object);  // after destroy(); true: its owner has freed it
};

struct mtf_memory final : mtf::DeviceObject {
  explicit mtf_memory(mtf_executor* executor, mtf::Kind its_kind = mtf::Kind::kMemory)
      : DeviceObject(executor, its_kind) {}
  void destroy() override;
  int32_t source = -1;  // MTF_*_MEMORY; -1: somebody else frees it
  mtf_arena* arena = nullptr;  // which gave it, and is kept
  SP_DeviceMemoryBase base = {SP_DEVICE_MEMORY_BASE_STRUCT_SIZE, nullptr, nullptr, 0, 0};
};

struct mtf_stream final : mtf::DeviceObject {
  explicit mtf_stream(mtf_executor* executor) : DeviceObject(executor, mtf::Kind::kStream) {}
  void destroy() override;
  SP_Stream handle = nullptr;
};

struct mtf_event final : mtf::DeviceObject {
  explicit mtf_event(mtf_executor* executor) : DeviceObject(executor, mtf::Kind::kEvent) {}
  void destroy() override;
  SP_Event handle = nullptr;
};

struct mtf_timer final : mtf::DeviceObject {
  explicit mtf_timer(mtf_executor* executor) : DeviceObject(executor, mtf::Kind::kTimer) {}
  void destroy() override;
  SP_Timer handle = nullptr;
};

namespace mtf {

// One call's right to use the plugin.
class ExecutorUse {
 public:
  explicit ExecutorUse(mtf_executor* executor) : executor_(executor), open_(executor->enter()) {}
  ~ExecutorUse() { executor_->leave(); }
  ExecutorUse(const ExecutorUse&) = delete;
  ExecutorUse& operator=(const ExecutorUse&) = delete;
  explicit operator bool() const { return open_; }

 private:
  mtf_executor* executor_;
  bool open_;
};

// NULL when `other`, of perhaps another device, may be used together with `executor`.
mtf_error* stranger_error(const mtf_executor* executor, const DeviceObject* other);

// Runs call(slot, status) if the executor is open and the plugin has the slot.
template <class Slot, class Call>
mtf_error* on_slot(mtf_executor* executor, Slot slot, const char* name, Call&& call) {
  ExecutorUse use(executor);
  if (!use) return closed_executor_error();
  if (slot == nullptr) return missing_slot_error(name);
  return guarded([&](TF_Status* status) { call(slot, status); });
}

// Calls a slot whose arguments are the device, these, and a status.
template <class... Parameters, class... Arguments>
mtf_error* call_slot(mtf_executor* executor, void (*slot)(const SP_Device*, Parameters...),
                     const char* name, Arguments... arguments) {
  return on_slot(executor, slot, name, [&](auto* function, TF_Status* status) {
    function(executor->device, arguments..., status);
  });
}

// Makes an object, has create(object) set it up and lists it; NULL and a kept error otherwise.
template <class Object, class Create, class... Arguments>
Object* make_object(mtf_executor* executor, Create&& create, Arguments... arguments) {
  auto* object = new (std::nothrow) Object(executor, arguments...);
  if (object == nullptr) return fail_with(make_error(8, "no memory for an object of a device"));
  ExecutorUse use(executor);  // closing waits until the object is listed
  mtf_error* error = use ? create(object) : closed_executor_error();
  if (error != nullptr) {
    delete object;
    return fail_with(error);
  }
  executor->add(object);
  return object;
}

}  // namespace mtf
#endif
