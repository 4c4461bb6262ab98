// What `compute` of a kernel sees: inputs, outputs, temporaries, its stream, and who it is.
#include "call.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "entry.h"
#include "modular_tf/kernels_experimental.h"

namespace mtf::kernels {

mtf_kernel_call* call_of(const TF_OpKernelContext* handle, const char* function) {
  return checked<mtf_kernel_call>(handle, HandleKind::kContext, function);
}

mtf_kernel_call* call_of(const TF_OpKernelContext* handle, const char* function,
                         TF_Status* status) {
  mtf_kernel_call* call = call_of(handle, function);
  if (call == nullptr) fail(status, TF_FAILED_PRECONDITION, "%s: the call is over", function);
  return call;
}

bool allocate_for_call(const mtf_kernel_call* call, Tensor* tensor, bool on_host, TF_Status* status) {
  if (tensor->dims.has_negative()) {
    fail_by(kRuleDimensions, status, TF_INVALID_ARGUMENT, "shape %s: sizes must not be negative",
            tensor->dims.text().c_str());
    return false;
  }
  size_t size = 0;
  char why[256] = "it is more than any memory has";
  if (size_of(tensor->dims, tensor->type, &size)) {
    if (size == 0) return true;
    if (on_host || is_object(tensor->type)) {
      if (allocate_on_host(tensor, size)) return true;
      std::snprintf(why, sizeof why, "the host has no memory");
    } else {
      void *address = nullptr, *owner = nullptr;
      if (call->place->allocate(call->place, size, &address, &owner, why, sizeof why)) {
        tensor->buffer = new_device_buffer(address, size, owner, call->place);
        if (tensor->buffer) {
          tensor->buffer->stream = call->stream;
          return true;
        }
        call->place->free(call->place, owner, nullptr);
      }
    }
  }
  fail_by(kRuleAllocated, status, TF_RESOURCE_EXHAUSTED,
          "no memory for a tensor with shape%s and type %s on %s: %s", tensor->dims.text().c_str(),
          type_name(tensor->type), on_host ? "the host" : call->place->device_name, why);
  return false;
}

namespace {

TF_StringView view_of(const char* text) { return {text, std::char_traits<char>::length(text)}; }

template <class List>
bool has(const List& list, int index) {
  return index >= 0 && static_cast<size_t>(index) < list.size();
}

template <class List>
auto& at(List& list, int index) {
  return list[static_cast<size_t>(index)];
}

TF_Tensor* handle_or_fail(Tensor tensor, TF_Status* status) {
  TF_Tensor* handle = new_tensor_handle(std::move(tensor));
  if (handle == nullptr) {
    fail(status, TF_RESOURCE_EXHAUSTED, "the host has no memory");
  } else {
    succeed(status);
  }
  return handle;
}

bool can_allocate_output(const mtf_kernel_call* call, int index, const char* function,
                         TF_Status* status) {
  if (!has(call->outputs, index)) {
    fail_by(kRuleOutputAllocated, status, TF_INTERNAL,
            "%s: index %d, but the kernel has %zu outputs", function, index, call->outputs.size());
    return false;
  }
  if (at(call->outputs, index).is_set) {
    fail_by(kRuleOutputAllocated, status, TF_INTERNAL,
            "%s: output %d was allocated or set before", function, index);
    return false;
  }
  return true;
}

bool is_empty(const CallInput& input) {
  return !input.variable && input.tensor.dims.elements() == 0;
}

// A sum of nothing is 0; kernels return early then, and some leave the output as it was.
void clear(Tensor* tensor) {
  if (tensor->size() != 0) std::memset(tensor->data(), 0, tensor->size());
}

TF_Tensor* allocate_output(mtf_kernel_call* call, int index, const int64_t* dims, int num_dims,
                           TF_Status* status) {
  const Slot& slot = at(call->node->outputs, index);
  Tensor tensor{{}, slot.type, Dims(dims, num_dims)};
  if (!allocate_for_call(call, &tensor, slot.is_on_host, status)) return nullptr;
  const auto& inputs = call->inputs;
  if (call->place->is_host && std::any_of(inputs.begin(), inputs.end(), is_empty)) clear(&tensor);
  TF_Tensor* handle = handle_or_fail(tensor, status);
  if (handle != nullptr) at(call->outputs, index) = {std::move(tensor), true, {}};
  return handle;
}

// Whether an output of that many elements may lie in the memory of an input.
bool may_forward(const mtf_kernel_call* call, int input_index, int output_index, const Dims& dims) {
  const CallInput& input = at(call->inputs, input_index);
  const Slot& output = at(call->node->outputs, output_index);
  const bool is_same_memory = call->place->is_host || input.is_on_host == output.is_on_host;
  return input.is_donated && input.tensor.buffer && !input.tensor.buffer->is_shared() &&
         input.tensor.type == output.type && is_same_memory &&
         input.tensor.dims.elements() == dims.elements();
}

const Argument* find_argument(const std::vector<Argument>& arguments, const char* name) {
  for (const Argument& argument : arguments) {
    if (name != nullptr && argument.name == name) return &argument;
  }
  return nullptr;
}

bool is_host_memory(const std::vector<Slot>& slots, int index, const char* what, TF_Status* status) {
  if (!has(slots, index)) {
    fail(status, TF_OUT_OF_RANGE, "%s %d of %zu", what, index, slots.size());
    return false;
  }
  succeed(status);
  return at(slots, index).is_on_host;
}

TF_DataType type_at(const std::vector<Slot>& slots, int index, const char* function) {
  if (has(slots, index)) return static_cast<TF_DataType>(at(slots, index).type);
  report_misuse_by(kRuleArguments, "%s: index %d of %zu", function, index, slots.size());
  return static_cast<TF_DataType>(0);
}

}  // namespace
}  // namespace mtf::kernels

using namespace mtf::kernels;  // the functions of the C interface

extern "C" {

// -- inputs --

int TF_NumInputs(TF_OpKernelContext* context) {
  const mtf_kernel_call* call = call_of(context, __func__);
  return call == nullptr ? 0 : static_cast<int>(call->inputs.size());
}

int TF_NumOutputs(TF_OpKernelContext* context) {
  const mtf_kernel_call* call = call_of(context, __func__);
  return call == nullptr ? 0 : static_cast<int>(call->outputs.size());
}

void TF_GetInput(TF_OpKernelContext* context, int index, TF_Tensor** tensor, TF_Status* status) {
  const mtf_kernel_call* call = call_of(context, __func__, status);
  if (call == nullptr) return;
  if (!has(call->inputs, index)) {
    return fail(status, TF_OUT_OF_RANGE, "input index out of range: %d of %zu", index,
                call->inputs.size());
  }
  with_status(status, [&] {
    TF_Tensor* handle = handle_or_fail(at(call->inputs, index).tensor, status);
    if (handle != nullptr) *tensor = handle;
  });
}

void TF_GetInputByName(TF_OpKernelContext* context, const char* name, TF_Tensor** tensor,
                       TF_Status* status) {
  const mtf_kernel_call* call = call_of(context, __func__, status);
  if (call == nullptr) return;
  const Argument* found = find_argument(call->node->input_arguments, name);
  if (found == nullptr || found->stop != found->start + 1) {
    return fail(status, TF_INVALID_ARGUMENT, "'%s': expected the name of an input that is one tensor",
                name == nullptr ? "(NULL)" : name);
  }
  TF_GetInput(context, found->start, tensor, status);
}

void TF_InputRange(TF_OpKernelContext* context, const char* name, TF_InputRange_Args* args) {
  const mtf_kernel_call* call = call_of(context, __func__, args->status);
  if (call == nullptr) return;
  const Argument* found = find_argument(call->node->input_arguments, name);
  if (found == nullptr) {
    args->start = args->stop = -1;
    return fail(args->status, TF_INVALID_ARGUMENT, "Unknown input name: %s",
                name == nullptr ? "(NULL)" : name);
  }
  args->start = found->start;
  args->stop = found->stop;
  succeed(args->status);
}

TF_DataType TF_InputDatatype(TF_OpKernelContext* context, int index) {
  const mtf_kernel_call* call = call_of(context, __func__);
  if (call == nullptr) return static_cast<TF_DataType>(0);
  if (has(call->inputs, index)) return static_cast<TF_DataType>(at(call->inputs, index).tensor.type);
  report_misuse_by(kRuleArguments, "%s: index %d of %zu", __func__, index, call->inputs.size());
  return static_cast<TF_DataType>(0);
}

bool TF_IsHostMemoryInput(TF_OpKernelContext* context, int index, TF_Status* status) {
  const mtf_kernel_call* call = call_of(context, __func__, status);
  return call != nullptr && is_host_memory(call->node->inputs, index, "input", status);
}

bool TF_IsHostMemoryOutput(TF_OpKernelContext* context, int index, TF_Status* status) {
  const mtf_kernel_call* call = call_of(context, __func__, status);
  return call != nullptr && is_host_memory(call->node->outputs, index, "output", status);
}

// -- outputs and temporaries --

TF_DataType TF_ExpectedOutputDataType(TF_OpKernelContext* context, int index) {
  const mtf_kernel_call* call = call_of(context, __func__);
  if (call == nullptr) return static_cast<TF_DataType>(0);
  return type_at(call->node->outputs, index, __func__);
}

void TF_SetOutput(TF_OpKernelContext* context, int index, const TF_Tensor* handle,
                  TF_Status* status) {
  mtf_kernel_call* call = call_of(context, __func__, status);
  if (call == nullptr) return;
  const Tensor* tensor = tensor_of(handle, __func__);
  if (tensor == nullptr) {
    return fail(status, TF_INVALID_ARGUMENT, "%s: the tensor is not in use", __func__);
  }
  if (!has(call->outputs, index)) {
    return fail(status, TF_OUT_OF_RANGE, "output index out of range: %d of %zu", index,
                call->outputs.size());
  }
  if (at(call->outputs, index).is_set) {
    return fail_by(kRuleOutputType, status, TF_INTERNAL,
                   "%s: output %d was allocated or set before", __func__, index);
  }
  with_status(status, [&] {
    at(call->outputs, index) = {*tensor, true, {}};
    succeed(status);
  });
}

TF_Tensor* TF_AllocateOutput(TF_OpKernelContext* context, int index, TF_DataType,
                             const int64_t* dims, int num_dims, size_t, TF_Status* status) {
  mtf_kernel_call* call = call_of(context, __func__, status);
  if (call == nullptr || !can_allocate_output(call, index, __func__, status)) return nullptr;
  TF_Tensor* handle = nullptr;
  with_status(status, [&] { handle = allocate_output(call, index, dims, num_dims, status); });
  return handle;
}

TF_Tensor* TF_ForwardInputOrAllocateOutput(TF_OpKernelContext* context, const int* candidates,
                                           int num_candidates, int output_index,
                                           const int64_t* dims, int num_dims, int* forwarded_input,
                                           TF_Status* status) {
  mtf_kernel_call* call = call_of(context, __func__, status);
  if (forwarded_input != nullptr) *forwarded_input = -1;
  if (call == nullptr || !can_allocate_output(call, output_index, __func__, status)) return nullptr;
  for (int index = 0; index < num_candidates; ++index) {
    if (!has(call->inputs, candidates[index])) {
      fail(status, TF_INVALID_ARGUMENT, "%s: candidate %d of %zu inputs", __func__,
           candidates[index], call->inputs.size());
      return nullptr;
    }
  }
  TF_Tensor* handle = nullptr;
  with_status(status, [&] {
    Dims wanted(dims, num_dims);
    for (int index = 0; index < num_candidates; ++index) {
      if (!may_forward(call, candidates[index], output_index, wanted)) continue;
      const Tensor& input = at(call->inputs, candidates[index]).tensor;
      Tensor tensor{input.buffer, input.type, std::move(wanted)};
      handle = handle_or_fail(tensor, status);
      if (handle == nullptr) return;
      at(call->outputs, output_index) = {std::move(tensor), true, {}};
      if (forwarded_input != nullptr) *forwarded_input = candidates[index];
      return;
    }
    handle = allocate_output(call, output_index, dims, num_dims, status);
  });
  return handle;
}

TF_Tensor* TF_AllocateTemp(TF_OpKernelContext* context, TF_DataType type, const int64_t* dims,
                           int num_dims, TF_AllocatorAttributes* attributes, TF_Status* status) {
  const mtf_kernel_call* call = call_of(context, __func__, status);
  if (call == nullptr) return nullptr;
  if (attributes != nullptr && attributes->struct_size == 0) {
    fail_by(kRuleTemporarySized, status, TF_INVALID_ARGUMENT,
            "TF_AllocatorAttributes struct_size must be set to %zu",
            static_cast<size_t>(TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE));
    return nullptr;
  }
  TF_Tensor* handle = nullptr;
  with_status(status, [&] {
    Tensor tensor{{}, static_cast<int32_t>(type), Dims(dims, num_dims)};
    const bool on_host = attributes != nullptr && attributes->on_host != 0;
    if (allocate_for_call(call, &tensor, on_host, status)) handle = handle_or_fail(std::move(tensor), status);
  });
  return handle;
}

TF_Tensor* TF_GetMutableOutput(TF_OpKernelContext* context, int index, TF_Status* status) {
  const mtf_kernel_call* call = call_of(context, __func__, status);
  if (call == nullptr) return nullptr;
  if (!has(call->outputs, index)) {
    fail(status, TF_OUT_OF_RANGE, "output index out of range: %d of %zu", index,
         call->outputs.size());
    return nullptr;
  }
  if (!at(call->outputs, index).is_set) {
    fail(status, TF_FAILED_PRECONDITION, "output %d was not allocated or set", index);
    return nullptr;
  }
  TF_Tensor* handle = nullptr;
  with_status(status, [&] { handle = handle_or_fail(at(call->outputs, index).tensor, status); });
  return handle;
}

// -- the rest --

void TF_OpKernelContext_Failure(TF_OpKernelContext* context, TF_Status* status) {
  mtf_kernel_call* call = call_of(context, __func__);
  if (call == nullptr) return;
  const mtf::LockGuard guard(call->lock);
  set_failure_of_plugin(&call->failure, status, kRuleComputeFailed);
}

SP_Stream TF_GetStream(TF_OpKernelContext* context, TF_Status* status) {
  const mtf_kernel_call* call = call_of(context, __func__, status);
  if (call == nullptr) return nullptr;
  if (call->place->is_host) {
    fail_by(kRuleStream, status, TF_FAILED_PRECONDITION,
            "TF_GetStream: %s works in host memory and has no stream", call->place->device_name);
    return nullptr;
  }
  succeed(status);
  return static_cast<SP_Stream>(call->stream);
}

// -- who a call is: its step, its device, its node --

int64_t TF_StepId(TF_OpKernelContext* context) {
  const mtf_kernel_call* call = call_of(context, __func__);
  return call == nullptr ? 0 : call->step;
}

int64_t TF_GetStepId(TF_OpKernelContext* context) { return TF_StepId(context); }

uint64_t TF_GetFrameId(TF_OpKernelContext* context) {
  call_of(context, __func__);
  return 0;  // there are no loops
}

int64_t TF_GetIterId(TF_OpKernelContext* context) {
  call_of(context, __func__);
  return 0;
}

int TF_GetDeviceId(TF_OpKernelContext* context) {
  const mtf_kernel_call* call = call_of(context, __func__);
  return call == nullptr ? 0 : call->place->ordinal;
}

TF_StringView TF_GetDeviceName(TF_OpKernelContext* context) {
  const mtf_kernel_call* call = call_of(context, __func__);
  return view_of(call == nullptr ? "" : call->place->device_name);
}

TF_StringView TF_GetOpKernelName(TF_OpKernelContext* context) {
  const mtf_kernel_call* call = call_of(context, __func__);
  if (call == nullptr) return view_of("");
  return {call->node->name.data(), call->node->name.size()};
}

TF_StringView TF_GetResourceMgrDefaultContainerName(TF_OpKernelContext* context) {
  call_of(context, __func__);
  return view_of("localhost");
}

TF_StringView TF_GetOpKernelRequestedInput(TF_OpKernelContext* context, size_t index) {
  const mtf_kernel_call* call = call_of(context, __func__);
  if (call == nullptr) return view_of("");
  for (const Argument& argument : call->node->input_arguments) {
    const auto number = static_cast<int>(index);
    if (argument.start <= number && number < argument.stop) return view_of(argument.name.c_str());
  }
  return view_of("");
}

// Of 2.21, whose answers these functions give.
int TF_GetGraphDefVersion(TF_OpKernelContext* context) {
  call_of(context, __func__);
  return 2474;
}

}  // extern "C"
