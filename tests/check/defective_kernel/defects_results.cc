// Defects of what kernels compute, and of what they leave behind.
#include <unistd.h>

#include <atomic>

#include "defects.h"

namespace {

std::atomic<int> calls_under_way{0};

TF_Tensor* input_of(TF_OpKernelContext* context) {
  defective::Status status;
  TF_Tensor* input = nullptr;
  TF_GetInput(context, 0, &input, status.get());
  return input;
}

void change_output(TF_OpKernelContext* context) {
  defective::Status status;
  TF_Tensor* output = TF_GetMutableOutput(context, 0, status.get());
  *static_cast<float*>(TF_TensorData(output)) += 1;
  TF_DeleteTensor(output);
}

}  // namespace

DEFECTS(results) = {
    {"KN-090",
     [](Tables& tables) {
       tables.compute = [](void* kernel, TF_OpKernelContext* context) {
         input_of(context);
         original.compute(kernel, context);
       };
     }},
    {"KN-091",
     [](Tables& tables) {
       tables.compute = [](void* kernel, TF_OpKernelContext* context) {
         const bool is_alone = ++calls_under_way == 1;
         usleep(2000);
         original.compute(kernel, context);
         if (!is_alone) change_output(context);
         --calls_under_way;
       };
     }},
    {"KN-092",
     [](Tables& tables) {
       tables.compute = [](void* object, TF_OpKernelContext* context) {
         auto* kernel = static_cast<Kernel*>(object);
         TF_Tensor* input = input_of(context);
         const int64_t elements = TF_TensorElementCount(input);
         TF_DeleteTensor(input);
         if (kernel->elements < 0) kernel->elements = elements;
         original.compute(kernel, context);
         if (kernel->elements != elements) change_output(context);
       };
     }},
    {"KN-093",
     [](Tables& tables) {
       tables.compute = [](void* kernel, TF_OpKernelContext* context) {
         original.compute(kernel, context);
         TF_Tensor* input = input_of(context);
         *static_cast<float*>(TF_TensorData(input)) += 1;
         TF_DeleteTensor(input);
       };
     }},
    {"KN-099",
     [](Tables& tables) {
       tables.compute = [](void* kernel, TF_OpKernelContext* context) {
         original.compute(kernel, context);
         change_output(context);
       };
     }},
};
