// Kernels on tensors of strings: test_strings.py.
#include <string>

#include "modular_tf/kernels.h"
#include "modular_tf/ops.h"
#include "modular_tf/tensor.h"

namespace {

TF_Tensor* input(TF_OpKernelContext* context, TF_Status* status) {
  TF_Tensor* tensor = nullptr;
  TF_GetInput(context, 0, &tensor, status);
  return tensor;
}

TF_Tensor* output_like(TF_OpKernelContext* context, const TF_Tensor* like, TF_DataType type,
                       TF_Status* status) {
  int64_t dims[8];
  for (int i = 0; i < TF_NumDims(like); ++i) dims[i] = TF_Dim(like, i);
  return TF_AllocateOutput(context, 0, type, dims, TF_NumDims(like), 0, status);
}

// Each string twice.
void double_all(void*, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor* from = input(context, status);
  TF_Tensor* to = output_like(context, from, TF_STRING, status);
  const auto* in = static_cast<const TF_TString*>(TF_TensorData(from));
  auto* out = static_cast<TF_TString*>(TF_TensorData(to));
  for (int64_t i = 0; i < TF_TensorElementCount(from); ++i) {
    std::string text(TF_StringGetDataPointer(in + i), TF_StringGetSize(in + i));
    text += text;
    TF_StringCopy(out + i, text.data(), text.size());
  }
  TF_DeleteTensor(from);
  TF_DeleteTensor(to);
  TF_DeleteStatus(status);
}

void measure(void*, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor* from = input(context, status);
  TF_Tensor* to = output_like(context, from, TF_INT64, status);
  const auto* in = static_cast<const TF_TString*>(TF_TensorData(from));
  auto* out = static_cast<int64_t*>(TF_TensorData(to));
  for (int64_t i = 0; i < TF_TensorElementCount(from); ++i) {
    out[i] = static_cast<int64_t>(TF_StringGetSize(in + i));
  }
  TF_DeleteTensor(from);
  TF_DeleteTensor(to);
  TF_DeleteStatus(status);
}

void pass_on(void*, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor* from = input(context, status);
  TF_SetOutput(context, 0, from, status);
  TF_DeleteTensor(from);
  TF_DeleteStatus(status);
}

void offer(const char* name, const char* in, const char* out, const char* attr,
           void (*compute)(void*, TF_OpKernelContext*)) {
  TF_Status* status = TF_NewStatus();
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name);
  if (attr != nullptr) TF_OpDefinitionBuilderAddAttr(op, attr);
  TF_OpDefinitionBuilderAddInput(op, in);
  TF_OpDefinitionBuilderAddOutput(op, out);
  TF_RegisterOpDefinition(op, status);
  TF_RegisterKernelBuilder(name, TF_NewKernelBuilder(name, "CPU", nullptr, compute, nullptr), status);
  TF_DeleteStatus(status);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void TF_InitKernel() {
  offer("MtfDoubleStrings", "x: string", "y: string", nullptr, double_all);
  offer("MtfMeasure", "x: string", "y: int64", nullptr, measure);
  offer("MtfPassOn", "x: T", "y: T", "T: type", pass_on);
}
