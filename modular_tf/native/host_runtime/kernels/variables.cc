#include "variables.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "call.h"
#include "entry.h"
#include "modular_tf/kernels_experimental.h"

namespace mtf::kernels {
namespace {

constexpr std::chrono::seconds kMostWait(5);  // for kernels that may never end
constexpr char kNoValue[] = "the variable has no value yet";

}  // namespace

bool lock_variable(mtf_kernel_variable* variable, mtf_kernel_failure* failure) {
  while (!variable->lock.try_lock_for(kMostWait)) {
    if (variable->abandoned_calls == 0) continue;
    set_failure(failure, TF_ABORTED, kRuleDoneOnce,
                "a kernel whose call was interrupted is not done, and the variable stays locked; use another "
                "variable, or try again when the kernel is done");
    return false;
  }
  return true;
}

mtf_kernel_variable* new_variable() { return new mtf_kernel_variable; }

void free_variable(mtf_kernel_variable* variable) {
  if (variable != nullptr) variable->release();
}

void set_variable(mtf_kernel_variable* variable, const mtf_kernel_place* place, void* data,
                  uint64_t size, void* owner, int32_t type, const int64_t* dims, int32_t rank,
                  mtf_kernel_failure* failure) {
  Tensor tensor{{}, type, Dims(dims, rank)};
  if (owner != nullptr) {
    tensor.buffer = new_device_buffer(data, size, owner, place);
    if (!tensor.buffer) throw std::bad_alloc();
  }
  if (!lock_variable(variable, failure)) return;
  const LockGuard guard(variable->lock, std::adopt_lock);
  variable->tensor = std::move(tensor);
  variable->is_initialized = true;
}

void read_variable(mtf_kernel_variable* variable, mtf_kernel_output* output, int64_t* dims,
                   mtf_kernel_failure* failure) {
  if (!lock_variable(variable, failure)) return;
  const LockGuard guard(variable->lock, std::adopt_lock);
  const Tensor& tensor = variable->tensor;
  if (!variable->is_initialized) {
    return set_failure(failure, TF_FAILED_PRECONDITION, kRuleNone, kNoValue);
  }
  *output = {};
  output->data = tensor.data();
  output->size = tensor.size();
  output->dims = std::copy_n(tensor.dims.data(), tensor.dims.rank(), dims) - tensor.dims.rank();
  output->rank = tensor.dims.rank();
  output->type = tensor.type;
  output->is_set = 1;
  output->from_input = -1;
  output->buffer = BufferRef(tensor.buffer).release();
}

namespace {

// The variable of an input; NULL and a status where it is none.
mtf_kernel_variable* variable_of(const mtf_kernel_call* call, int index, TF_Status* status) {
  if (index < 0 || static_cast<size_t>(index) >= call->inputs.size()) {
    fail(status, TF_OUT_OF_RANGE, "input index out of range: %d of %zu", index, call->inputs.size());
    return nullptr;
  }
  auto* variable = call->inputs[static_cast<size_t>(index)].variable.get();
  if (variable == nullptr) fail(status, TF_INVALID_ARGUMENT, "input %d is no variable", index);
  return variable;
}

const Tensor* value_of(const mtf_kernel_call* call, int index, TF_Status* status) {
  if (index >= 0 && static_cast<size_t>(index) < call->inputs.size()) {
    return &call->inputs[static_cast<size_t>(index)].tensor;
  }
  fail(status, TF_OUT_OF_RANGE, "input index out of range: %d of %zu", index, call->inputs.size());
  return nullptr;
}

// A handle for a function that the plugin passed: deleted afterwards, also when that throws. One that the
// plugin has deleted itself is not missed.
class LentHandle {
 public:
  explicit LentHandle(Tensor tensor) : handle_(new_tensor_handle(std::move(tensor))) {}
  ~LentHandle() { take(); }
  LentHandle(const LentHandle&) = delete;
  LentHandle& operator=(const LentHandle&) = delete;
  explicit operator bool() const { return handle_ != nullptr; }
  TF_Tensor* get() const { return handle_; }
  // The tensor as the plugin has left it; NULL where the plugin deleted it.
  std::unique_ptr<Tensor> take() const {
    return std::unique_ptr<Tensor>(static_cast<Tensor*>(end_handle(handle_, HandleKind::kTensor)));
  }

 private:
  TF_Tensor* const handle_;
};

// Has the plugin copy a tensor into new memory.
bool copy_by_plugin(TF_OpKernelContext* context, const mtf_kernel_call* call, TF_TensorCopy copy,
                    const Tensor& source, Tensor* target, TF_Status* status) {
  *target = Tensor{{}, source.type, source.dims};
  if (!allocate_for_call(call, target, false, status)) return false;
  if (source.size() == 0) return true;
  const LentHandle from(source), to(*target);
  const bool is_possible = from && to && copy != nullptr;
  if (is_possible) copy(context, from.get(), to.get());
  if (!is_possible) fail(status, TF_INTERNAL, "the value cannot be copied");
  return is_possible;
}

// Makes the memory of a variable its own. The caller holds the lock.
bool make_exclusive(TF_OpKernelContext* context, const mtf_kernel_call* call,
                    mtf_kernel_variable* variable, TF_TensorCopy copy, TF_Status* status) {
  const Tensor& tensor = variable->tensor;
  if (!tensor.buffer || !tensor.buffer->is_shared()) return true;
  Tensor own;
  if (!copy_by_plugin(context, call, copy, tensor, &own, status)) return false;
  variable->tensor = std::move(own);
  return true;
}

bool is_locked_by(const mtf_kernel_call* call, const mtf_kernel_variable* variable) {
  return std::any_of(call->locks.begin(), call->locks.end(), [&](const auto& held) {
    return std::find(held->locked.begin(), held->locked.end(), variable) != held->locked.end();
  });
}

// Variables that TF_TemporaryVariable has made, by device and name, until TF_DestroyTemporaryVariable.
struct Temporaries {
  Lock lock;
  std::map<std::pair<const mtf_kernel_place*, std::string>, VariableRef> by_name;
};

Temporaries& temporaries() {
  static auto* const made = new Temporaries;  // never destroyed: plugins' threads outlive destructors
  return *made;
}

std::string text_of(const TF_StringView* text) {
  return text == nullptr || text->data == nullptr ? std::string() : std::string(text->data, text->len);
}

// Lets an output refer to a variable; false and a status where it cannot.
bool refer_to(mtf_kernel_call* call, size_t output, mtf_kernel_variable* variable,
              TF_Status* status) {
  if (output >= call->outputs.size() || !is_reference(call->node->outputs[output].type)) {
    fail(status, TF_INVALID_ARGUMENT, "output %zu is no reference", output);
    return false;
  }
  variable->retain();
  call->outputs[output].variable.reset(variable);
  return true;
}

// Whether the call holds the lock of a variable that is to be locked after this one.
bool has_later_lock(const mtf_kernel_call* call, const mtf_kernel_variable* variable) {
  return std::any_of(call->locks.begin(), call->locks.end(), [&](const auto& held) {
    return std::any_of(held->locked.begin(), held->locked.end(),
                       [&](const mtf_kernel_variable* other) { return other > variable; });
  });
}

// Takes the lock of a variable that the call does not hold. Calls that lock several one after the other
// may wait for each other for ever: false and a status where this one has waited too long.
bool take_lock(mtf_kernel_call* call, mtf_kernel_variable* variable, TF_Status* status) {
  if (has_later_lock(call, variable)) {
    if (variable->lock.try_lock_for(kMostWait)) return true;
    fail(status, TF_ABORTED,
         "another kernel holds the lock of a variable and this one holds locks that it may wait for; "
         "lock all variables of a call at once");
    return false;
  }
  mtf_kernel_failure failure = {};
  if (lock_variable(variable, &failure)) return true;
  fail(status, static_cast<TF_Code>(failure.code), "%s", failure.message);
  const LockGuard guard(call->lock);
  set_failure(&call->failure, failure.code, failure.rule, failure.message);
  std::free(failure.message);
  return false;
}

// The same as a guard; nothing is to be done where the call has the lock already.
bool lock_unless_held(mtf_kernel_call* call, mtf_kernel_variable* variable, UniqueLock* guard,
                      TF_Status* status) {
  if (is_locked_by(call, variable)) return true;
  if (!take_lock(call, variable, status)) return false;
  *guard = UniqueLock(variable->lock, std::adopt_lock);
  return true;
}

void assign(TF_OpKernelContext* context, mtf_kernel_call* call, mtf_kernel_variable* variable,
            int value_index, bool validate_shape, TF_TensorCopy copy, TF_Status* status) {
  const Tensor* value = value_of(call, value_index, status);
  if (value == nullptr) return;
  UniqueLock guard;
  if (!lock_unless_held(call, variable, &guard, status)) return;
  if (validate_shape && variable->is_initialized && !(variable->tensor.dims == value->dims)) {
    return fail(status, TF_INVALID_ARGUMENT,
                "the variable has shape %s, and the value has shape %s",
                variable->tensor.dims.text().c_str(), value->dims.text().c_str());
  }
  Tensor own;  // the memory of an input is the caller's
  if (!copy_by_plugin(context, call, copy, *value, &own, status)) return;
  variable->tensor = std::move(own);
  variable->is_initialized = true;
  succeed(status);
}

void update(TF_OpKernelContext* context, mtf_kernel_call* call, mtf_kernel_variable* variable,
            int value_index, int operation, TF_TensorCopy copy, TF_TensorUpdate change,
            TF_Status* status) {
  const Tensor* value = value_of(call, value_index, status);
  if (value == nullptr) return;
  UniqueLock guard;
  if (!lock_unless_held(call, variable, &guard, status)) return;
  if (!variable->is_initialized) {
    return fail(status, TF_FAILED_PRECONDITION, "%s", kNoValue);
  }
  if (!(variable->tensor.dims == value->dims)) {
    return fail(status, TF_INVALID_ARGUMENT, "the variable has shape %s, and the value has shape %s",
                variable->tensor.dims.text().c_str(), value->dims.text().c_str());
  }
  if (!make_exclusive(context, call, variable, copy, status)) return;
  const LentHandle target(variable->tensor), source(*value);
  const bool is_possible = target && source && change != nullptr;
  if (is_possible) change(context, target.get(), source.get(), operation);
  is_possible ? succeed(status) : fail(status, TF_INTERNAL, "the variable cannot be updated");
}

// Runs `body(call, variable)` on the variable of an input; what it says in the status fails the call.
template <class Body>
void on_variable(TF_OpKernelContext* context, int index, const char* function, TF_Status* status,
                 Body&& body) {
  mtf_kernel_call* call = call_of(context, function, status);
  if (call == nullptr) return;
  with_status(status, [&] {
    mtf_kernel_variable* variable = variable_of(call, index, status);
    if (variable != nullptr) body(call, variable);
  });
  const LockGuard guard(call->lock);
  set_failure_of_plugin(&call->failure, status, kRuleVariable);
}

}  // namespace

void drop_temporaries(const mtf_kernel_place* place) {
  std::vector<VariableRef> dropped;  // after the lock: plugins may get memory back
  const LockGuard guard(temporaries().lock);
  auto& by_name = temporaries().by_name;
  for (auto each = by_name.lower_bound({place, ""}); each != by_name.end() && each->first.first == place;) {
    dropped.push_back(std::move(each->second));
    each = by_name.erase(each);
  }
}

}  // namespace mtf::kernels

using namespace mtf::kernels;  // the functions of the C interface

extern "C" {

void TF_AssignVariable(TF_OpKernelContext* context, int input_index, int value_index,
                       bool validate_shape, TF_TensorCopy copy, TF_Status* status) {
  on_variable(context, input_index, __func__, status, [&](auto* call, auto* variable) {
    assign(context, call, variable, value_index, validate_shape, copy, status);
  });
}

void TF_AssignRefVariable(TF_OpKernelContext* context, int input_ref_index, int output_ref_index,
                          int value_index, bool, bool validate_shape, TF_TensorCopy copy,
                          TF_Status* status) {
  TF_OpKernelContext_ForwardRefInputToRefOutput(context, input_ref_index, output_ref_index);
  TF_AssignVariable(context, input_ref_index, value_index, validate_shape, copy, status);
}

void TF_AssignUpdateVariable(TF_OpKernelContext* context, int input_index, int value_index,
                             int operation, int is_variant, TF_TensorCopy copy,
                             TF_TensorUpdate change, TF_Status* status) {
  if (is_variant != 0) return fail(status, TF_UNIMPLEMENTED, "variables of variants");
  on_variable(context, input_index, __func__, status, [&](auto* call, auto* variable) {
    update(context, call, variable, value_index, operation, copy, change, status);
  });
}

void TF_GetInputTensorFromVariable(TF_OpKernelContext* context, int input_index, bool, bool,
                                   bool, TF_TensorCopy copy, TF_Tensor** tensor,
                                   TF_Status* status) {
  *tensor = nullptr;
  on_variable(context, input_index, __func__, status, [&](auto* call, auto* variable) {
    mtf::UniqueLock guard;
    if (!lock_unless_held(call, variable, &guard, status)) return;
    if (!variable->is_initialized) {
      return fail(status, TF_FAILED_PRECONDITION, "%s", kNoValue);
    }
    if (!make_exclusive(context, call, variable, copy, status)) return;
    *tensor = new_tensor_handle(variable->tensor);
    *tensor != nullptr ? succeed(status)
                       : fail(status, TF_RESOURCE_EXHAUSTED, "the host has no memory");
  });
}

void TF_MaybeLockVariableInputMutexesInOrder(TF_OpKernelContext* context, bool, bool,
                                             const int* input_indices, size_t count, TF_TensorCopy,
                                             TF_VariableInputLockHolder** holder,
                                             TF_Status* status) {
  *holder = nullptr;
  mtf_kernel_call* call = call_of(context, __func__, status);
  if (call == nullptr) return;
  with_status(status, [&] {
    std::vector<mtf_kernel_variable*> wanted;
    for (size_t index = 0; index < count; ++index) {
      mtf_kernel_variable* variable = variable_of(call, input_indices[index], status);
      if (variable == nullptr) return;
      if (!is_locked_by(call, variable)) wanted.push_back(variable);
    }
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    auto locks = std::make_unique<VariableLocks>();
    locks->locked.reserve(wanted.size());
    for (mtf_kernel_variable* variable : wanted) {
      if (!take_lock(call, variable, status)) return;
      locks->locked.push_back(variable);
    }
    locks->handle = new_handle(HandleKind::kVariableLocks, locks.get());
    if (locks->handle == nullptr) throw std::bad_alloc();
    *holder = static_cast<TF_VariableInputLockHolder*>(locks->handle);
    call->locks.push_back(std::move(locks));
    succeed(status);
  });
}

void TF_ReleaseVariableInputLockHolder(TF_VariableInputLockHolder* holder) {
  if (holder == nullptr) return;
  auto* locks = static_cast<VariableLocks*>(end_handle(holder, HandleKind::kVariableLocks));
  if (locks == nullptr) return report_misuse(__func__, holder, HandleKind::kVariableLocks);
  locks->unlock();
}

void TF_TemporaryVariable(TF_OpKernelContext* context, TF_DataType type, const int64_t* dims,
                          int num_dims, TF_StringView* name,
                          void (*allocate)(TF_OpKernelContext*, TF_Tensor*, TF_DataType,
                                           const int64_t*, int, TF_Status*),
                          TF_Status* status) {
  mtf_kernel_call* call = call_of(context, __func__, status);
  if (call == nullptr) return;
  with_status(status, [&] {
    VariableRef variable(new_variable());
    const LentHandle tensor(Tensor{{}, static_cast<int32_t>(type), Dims(dims, num_dims)});
    if (!tensor) throw std::bad_alloc();
    succeed(status);
    allocate(context, tensor.get(), type, dims, num_dims, status);
    const std::unique_ptr<Tensor> made = tensor.take();
    if (TF_GetCode(status) != TF_OK || made == nullptr) return;
    variable->tensor = *made;
    variable->is_initialized = true;
    if (!refer_to(call, 0, variable.get(), status)) return;
    const mtf::LockGuard guard(temporaries().lock);
    const std::pair key(call->place, text_of(name));
    const bool is_new = temporaries().by_name.emplace(key, std::move(variable)).second;
    if (!is_new) {
      fail(status, TF_ALREADY_EXISTS, "temporary variable '%s' exists", text_of(name).c_str());
    }
  });
}

void TF_DestroyTemporaryVariable(TF_OpKernelContext* context, int index, TF_StringView* name,
                                 TF_Status* status) {
  mtf_kernel_call* call = call_of(context, __func__, status);
  if (call == nullptr) return;
  with_status(status, [&] {
    mtf_kernel_variable* given = variable_of(call, index, status);
    if (given == nullptr) return;
    if (call->outputs.empty()) return fail(status, TF_INVALID_ARGUMENT, "there is no output");
    mtf::UniqueLock locked;
    if (!lock_unless_held(call, given, &locked, status)) return;
    {
      const mtf::LockGuard guard(temporaries().lock);
      const auto found = temporaries().by_name.find({call->place, text_of(name)});
      if (found == temporaries().by_name.end() || found->second.get() != given) {
        return fail(status, TF_NOT_FOUND, "no temporary variable '%s'", text_of(name).c_str());
      }
      temporaries().by_name.erase(found);  // the input keeps the variable
    }
    call->outputs[0] = {given->tensor, true, {}};
    succeed(status);
  });
}

bool TF_IsRefInput(TF_OpKernelContext* context, int index, TF_Status* status) {
  const mtf_kernel_call* call = call_of(context, __func__, status);
  if (call == nullptr) return false;
  if (index < 0 || static_cast<size_t>(index) >= call->node->inputs.size()) {
    fail(status, TF_OUT_OF_RANGE, "input %d of %zu", index, call->node->inputs.size());
    return false;
  }
  succeed(status);
  return is_reference(call->node->inputs[static_cast<size_t>(index)].type);
}

void TF_OpKernelContext_ForwardRefInputToRefOutput(TF_OpKernelContext* context, int32_t input_index,
                                                   int32_t output_index) {
  mtf_kernel_call* call = call_of(context, __func__);
  if (call == nullptr) return;
  const bool is_there = output_index >= 0 && input_index >= 0 &&
                        static_cast<size_t>(output_index) < call->outputs.size() &&
                        static_cast<size_t>(input_index) < call->inputs.size();
  if (!is_there) {
    return report_misuse_by(kRuleArguments, "%s: input %d to output %d", __func__, input_index, output_index);
  }
  mtf_kernel_variable* variable = call->inputs[static_cast<size_t>(input_index)].variable.get();
  const size_t output = static_cast<size_t>(output_index);
  if (variable == nullptr || !is_reference(call->node->outputs[output].type)) return;  // a resource
  variable->retain();
  call->outputs[output].variable.reset(variable);
}

}  // extern "C"
