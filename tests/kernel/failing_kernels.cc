// Kernels that pass on what the host says, each of another standard operation.
#include "modular_tf/kernels.h"
#include "modular_tf/kernels_experimental.h"

namespace {

constexpr int64_t kLarge[] = {int64_t{1} << 60};

class Status {
 public:
  Status() : status_(TF_NewStatus()) {}
  ~Status() { TF_DeleteStatus(status_); }
  TF_Status* get() { return status_; }

 private:
  TF_Status* status_;
};

void* fail_to_create(TF_OpKernelConstruction* construction) {
  Status status;
  TF_SetStatus(status.get(), TF_UNIMPLEMENTED, "not on this machine");
  TF_OpKernelConstruction_Failure(construction, status.get());
  return nullptr;
}

void fail_to_compute(void*, TF_OpKernelContext* context) {
  Status status;
  TF_SetStatus(status.get(), TF_NOT_FOUND, "nothing to compute");
  TF_OpKernelContext_Failure(context, status.get());
}

void allocate_too_much(void*, TF_OpKernelContext* context) {
  Status status;
  TF_AllocateOutput(context, 0, TF_FLOAT, kLarge, 1, 0, status.get());
  TF_OpKernelContext_Failure(context, status.get());
}

void ask_for_stream(void*, TF_OpKernelContext* context) {
  Status status;
  TF_GetStream(context, status.get());
  TF_OpKernelContext_Failure(context, status.get());
}

void assign_to_no_variable(void*, TF_OpKernelContext* context) {
  Status status;
  TF_AssignVariable(context, 0, 0, false,
                    [](TF_OpKernelContext*, TF_Tensor*, TF_Tensor*) {}, status.get());
}

void add(const char* op, void* (*create)(TF_OpKernelConstruction*),
         void (*compute)(void*, TF_OpKernelContext*)) {
  Status status;
  TF_KernelBuilder* builder = TF_NewKernelBuilder(op, "CPU", create, compute, nullptr);
  TF_RegisterKernelBuilder(op, builder, status.get());
}

}  // namespace

extern "C" TF_CAPI_EXPORT void TF_InitKernel() {
  add("Neg", fail_to_create, fail_to_compute);
  add("Abs", nullptr, fail_to_compute);
  add("Square", nullptr, allocate_too_much);
  add("Sign", nullptr, ask_for_stream);
  add("Exp", nullptr, assign_to_no_variable);
}
