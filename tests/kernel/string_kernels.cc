// Kernels on tensors of strings: test_strings.py.
#include <string>

#include "offering.h"

namespace {

TF_Tensor* output_like(TF_OpKernelContext* context, const TF_Tensor* like, TF_DataType type,
                       TF_Status* status) {
  int64_t dims[8];
  for (int i = 0; i < TF_NumDims(like); ++i) dims[i] = TF_Dim(like, i);
  return TF_AllocateOutput(context, 0, type, dims, TF_NumDims(like), 0, status);
}

// Each string twice.
void double_all(void*, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor* from = input(context, 0, status);
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
  end(context, status);
}

void measure(void*, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor* from = input(context, 0, status);
  TF_Tensor* to = output_like(context, from, TF_INT64, status);
  const auto* in = static_cast<const TF_TString*>(TF_TensorData(from));
  auto* out = static_cast<int64_t*>(TF_TensorData(to));
  for (int64_t i = 0; i < TF_TensorElementCount(from); ++i) {
    out[i] = static_cast<int64_t>(TF_StringGetSize(in + i));
  }
  TF_DeleteTensor(from);
  TF_DeleteTensor(to);
  end(context, status);
}

void pass_on(void*, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor* from = input(context, 0, status);
  TF_SetOutput(context, 0, from, status);
  TF_DeleteTensor(from);
  end(context, status);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void TF_InitKernel() {
  offer("MtfDoubleStrings", nullptr, double_all, nullptr, "ix: string", "oy: string", nullptr);
  offer("MtfMeasure", nullptr, measure, nullptr, "ix: string", "oy: int64", nullptr);
  offer("MtfPassOn", nullptr, pass_on, nullptr, "aT: type", "ix: T", "oy: T", nullptr);
}
