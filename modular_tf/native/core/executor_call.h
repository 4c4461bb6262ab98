// One call into a device plugin: what has to stay open meanwhile, and how it fails.
#pragma once

#include <memory>
#include <new>
#include <utility>

#include "executor_state.h"
#include "guard.h"

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
