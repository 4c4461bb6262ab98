// Whose functions give an executor its memory: those of its SP_StreamExecutor, or of an allocator
// of the RFC of 2020-09-08.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "arena.h"
#include "plugin_call.h"
#include "executor.h"
#include "fork_lock.h"
#include "guard.h"
#include "modular_tf/device.h"
#include "error.h"

namespace mtf {

// [any thread] The kinds are MTF_*_MEMORY. Functions but `name` and `has*` call the plugin,
// which may throw; `has*` tells whether it has what is called.
class Allocator {
 public:
  virtual ~Allocator() = default;

  // The plugin's function that allocates.
  virtual const char* name(int32_t kind) const = 0;
  virtual bool has(int32_t kind) const = 0;
  // Sets `opaque`, and `payload` where the plugin has one; NULL when there is no memory.
  virtual void allocate(const SP_Device* device, int32_t kind, uint64_t size,
                        SP_DeviceMemoryBase* memory) const = 0;
  // Does nothing where the plugin has no such function.
  virtual void deallocate(const SP_Device* device, int32_t kind,
                          SP_DeviceMemoryBase* memory) const = 0;

  virtual bool has_stats() const = 0;
  virtual bool stats(const SP_Device* device, SP_AllocatorStats* stats) const = 0;
  virtual bool has_usage() const = 0;
  virtual bool usage(const SP_Device* device, int64_t* free_bytes, int64_t* total_bytes) const = 0;
};

// Each copies its table. NULL when the host has no memory.
std::unique_ptr<Allocator> executor_allocator(const SP_StreamExecutor& table);
std::unique_ptr<Allocator> rfc_allocator(const void* fns, const void* allocator, bool unified);
std::unique_ptr<Allocator> rfc_custom_allocator(const void* fns, const void* allocator);

// What is behind an executor: the plugin's table, the calls that run, the objects that are alive.

// The order in which what is left is destroyed. Memory that the host may be looking at comes last:
// it stays until its owner frees it.
enum class Kind { kTimer, kEvent, kStream, kMemory, kHostMemory, kKinds };

// How far the end of an executor has come. When it is quiet, the device has finished its work; when
// it has ended, no other device uses what was its any more.
enum class Stage { kOpen, kFinishing, kQuiet, kEnded };

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
  bool is_internal = false;       // not created by the user: an arena's region, an event that a wait polls
};

}  // namespace mtf

struct mtf_executor {
  mtf_executor() = default;
  ~mtf_executor();

  const mtf_plugin* plugin = nullptr;  // for messages, as is the name
  char name[64] = "";
  SP_StreamExecutor table = {};
  std::unique_ptr<mtf::Allocator> allocator;
  const SP_Device* device = nullptr;
  bool is_host = false;  // device memory is the host's
  std::atomic<uint64_t (*)(SP_Timer)> nanoseconds{nullptr};
  const unsigned generation = mtf::fork_generation();  // objects of another belong to the parent

  std::atomic<int64_t> calls{0};
  std::atomic<bool> closed{false};
  std::atomic<bool> is_left{false};  // as it is, for good, since executions of kernels go on
  std::atomic<int> references{1};

  bool is_foreign() const { return generation != mtf::fork_generation(); }
  bool is_open() const { return !closed.load() && !is_foreign(); }
  // Whether plugin calls are allowed; leave() follows in any case.
  bool enter() {
    calls.fetch_add(1);
    return is_open();
  }
  void leave() { calls.fetch_sub(1); }
  mtf::Stage stage() const { return stage_; }
  void retain() { references.fetch_add(1); }
  // A parent's stays, since a fork may come in the middle of a change to it.
  void release() {
    if (references.fetch_sub(1) == 1 && !is_foreign()) delete this;
  }

  void add(mtf::DeviceObject* object);
  // Destroys it unless that has been done, and frees it. Returns how many of its kind are left.
  int end(mtf::DeviceObject* object);
  int count(mtf::Kind its_kind);  // until the plugin's function that destroys it has returned
  int count_held();  // of all kinds, without regions of arenas

  // Devices of one plugin may use each other's streams, events and memory.
  bool shares_plugin_with(const mtf_executor* other) const {
    return table.create_stream == other->table.create_stream;
  }
  // Work of another executor is about to use an object of this one. False: no memory to note it.
  bool add_user(mtf_executor* user);
  bool is_used_by(const mtf_executor* other);

  // The end, in this order; several threads may do it at once.
  void refuse_calls() { closed = true; }
  // False: after a while only executions of kernels are left that nobody waits for.
  bool await_calls();
  // They may use what is alive: that is left as it is, for good.
  mtf::Error leave_all();
  mtf::Error finish_work();
  void await_users();  // the work of others that uses objects of this one
  void destroy_all();

 private:
  void take_off(mtf::DeviceObject* object);
  int account_end(mtf::DeviceObject* object);  // after destroy(); returns how many are left
  void make_quiet();
  mtf::Error finish_all();
  mtf::Error finish_streams();
  void await_work();
  void forget_users();

  mtf::Lock mutex_;  // of what follows
  mtf::Signal changed_;
  mtf::DeviceObject* objects_[static_cast<int>(mtf::Kind::kKinds)] = {};
  int alive_[static_cast<int>(mtf::Kind::kKinds)] = {};
  int ending_ = 0;  // objects that left their list and are being destroyed
  std::atomic<mtf::Stage> stage_{mtf::Stage::kOpen};
  mtf::Error failure_;  // of the work that was in flight at the end
  std::vector<mtf_executor*> users_;  // each kept
};

struct mtf_memory final : mtf::DeviceObject {
  explicit mtf_memory(mtf_executor* executor, mtf::Kind its_kind = mtf::Kind::kMemory)
      : DeviceObject(executor, its_kind) {}
  void destroy() override;
  int32_t source = -1;  // MTF_*_MEMORY; -1: its owner frees it
  mtf_arena* arena = nullptr;  // which gave it, and is kept
  mtf_memory* next_deferred = nullptr;  // in a list of what kernels gave back
  void* deferred_stream = nullptr;      // whose queued work may use it then
  SP_DeviceMemoryBase base = {SP_DEVICE_MEMORY_BASE_STRUCT_SIZE, nullptr, nullptr, 0, 0};
};

namespace mtf {

// Has the plugin give memory of a kind, MTF_*_MEMORY, to an object that is not listed yet.
Error allocate(mtf_memory* memory, int32_t source, uint64_t size);

inline Kind kind_of(const mtf_executor* executor, int32_t source) {
  const bool is_devices_own = source == MTF_DEVICE_MEMORY && !executor->is_host;
  return is_devices_own ? Kind::kMemory : Kind::kHostMemory;
}

}  // namespace mtf

struct mtf_stream final : mtf::DeviceObject {
  explicit mtf_stream(mtf_executor* executor) : DeviceObject(executor, mtf::Kind::kStream) {}
  void destroy() override;
  SP_Stream handle = nullptr;
  std::atomic<mtf_event*> mark{nullptr};  // for waits; the waiting thread takes it meanwhile
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

// One call into a device plugin: what has to stay open meanwhile, and how it fails.

namespace mtf {

Error closed_executor_error(const mtf_executor* executor);
Error missing_slot_error(const char* name);

// Executions of kernels that were given up before they were over, each with a use of its executor. Frees
// those that are over by now; returns how many of an executor are not.
int64_t end_abandoned_executions(const mtf_executor* executor);

// Marks this thread as inside a call that was let in before: an executor that closes waits for that
// call, and lets in what it does. It no longer does so once it has given up that call.
class NestedCall {
 public:
  explicit NestedCall(const mtf_executor* executor) : outer_(executor_) { executor_ = executor; }
  ~NestedCall() { executor_ = outer_; }
  NestedCall(const NestedCall&) = delete;
  NestedCall& operator=(const NestedCall&) = delete;
  static bool is_of(const mtf_executor* executor) {
    return executor_ == executor && !executor->is_foreign() && executor->stage() == Stage::kOpen;
  }

 private:
  const mtf_executor* const outer_;
  inline static thread_local const mtf_executor* executor_ = nullptr;
};

// One call's right to use the plugin.
class ExecutorUse {
 public:
  explicit ExecutorUse(mtf_executor* executor)
      : executor_(executor), open_(executor->enter() || NestedCall::is_of(executor)) {}
  ~ExecutorUse() { executor_->leave(); }
  ExecutorUse(const ExecutorUse&) = delete;
  ExecutorUse& operator=(const ExecutorUse&) = delete;
  explicit operator bool() const { return open_; }

 private:
  mtf_executor* executor_;
  bool open_;
};

// An object in a call of `user`, perhaps of another executor. That one stays open meanwhile, and
// when it is closed later it waits for the work of `user` before anything of it is destroyed.
class Operand {
 public:
  Operand(mtf_executor* user, const DeviceObject* object) : user_(user), owner_(object->owner) {
    if (owner_ != user_) hold();
  }
  ~Operand() {
    if (owner_ != user_) owner_->leave();
  }
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;

  // NULL when it may be used.
  Error refusal() const { return verdict_ == Verdict::kUsable ? nullptr : explain(); }

 private:
  enum class Verdict { kUsable, kClosed, kStranger, kNoMemory };
  void hold();
  Error explain() const;

  mtf_executor* const user_;
  mtf_executor* const owner_;
  Verdict verdict_ = Verdict::kUsable;
};

// Runs call(slot, status) if the executor is open and the plugin has the slot.
template <class Slot, class Call>
Error on_slot(mtf_executor* executor, Slot slot, const char* name, Call&& call) {
  ExecutorUse use(executor);
  if (!use) return closed_executor_error(executor);
  if (slot == nullptr) return missing_slot_error(name);
  return guarded({executor->plugin, name, executor->name}, [&](TF_Status* status) {
    call(slot, status);
  });
}

// Calls a slot whose arguments are the device, these, and a status.
template <class... Parameters, class... Arguments>
Error call_slot(mtf_executor* executor, void (*slot)(const SP_Device*, Parameters...),
                const char* name, Arguments... arguments) {
  return on_slot(executor, slot, name, [&](auto* function, TF_Status* status) {
    function(executor->device, arguments..., status);
  });
}

// Makes an object, has create(object) set it up and lists it; NULL and a kept error otherwise.
template <class Object, class Create, class... Arguments>
Object* make_object(mtf_executor* executor, Create&& create, Arguments... arguments) {
  std::unique_ptr<Object> object(new (std::nothrow) Object(executor, arguments...));
  if (object == nullptr) return fail_with(make_error(TF_RESOURCE_EXHAUSTED,
                                                     "no memory for an object of a device"));
  ExecutorUse use(executor);  // closing waits until the object is listed
  Error error = use ? create(object.get()) : closed_executor_error(executor);
  if (error) return fail_with(error.release());
  executor->add(object.get());
  return object.release();
}

}  // namespace mtf
