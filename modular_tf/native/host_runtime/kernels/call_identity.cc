// Who a call is: its step, its device, its node.
#include <string>

#include "context.h"

namespace mtf::kernels {
namespace {

TF_StringView view_of(const char* text) { return {text, std::char_traits<char>::length(text)}; }

}  // namespace
}  // namespace mtf::kernels

using namespace mtf::kernels;  // the functions of the C interface

extern "C" {

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
