// Kernels that pass on what the host says, each of another standard operation.
#include "modular_tf/kernels_experimental.h"
#include "offering.h"

namespace {

constexpr int64_t kLarge[] = {int64_t{1} << 60};

void* fail_to_create(TF_OpKernelConstruction* construction) {
  TF_Status* status = TF_NewStatus();
  TF_SetStatus(status, TF_UNIMPLEMENTED, "not on this machine");
  TF_OpKernelConstruction_Failure(construction, status);
  TF_DeleteStatus(status);
  return nullptr;
}

void fail_to_compute(void*, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_SetStatus(status, TF_NOT_FOUND, "nothing to compute");
  end(context, status);
}

void allocate_too_much(void*, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_AllocateOutput(context, 0, TF_FLOAT, kLarge, 1, 0, status);
  end(context, status);
}

void ask_for_stream(void*, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_GetStream(context, status);
  end(context, status);
}

void assign_to_no_variable(void*, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_AssignVariable(context, 0, 0, false, [](TF_OpKernelContext*, TF_Tensor*, TF_Tensor*) {}, status);
  TF_DeleteStatus(status);
}

void add(const char* op, Create create, Compute compute) {
  enter(op, TF_NewKernelBuilder(op, "CPU", create, compute, nullptr));
}

}  // namespace

extern "C" TF_CAPI_EXPORT void TF_InitKernel() {
  add("Neg", fail_to_create, fail_to_compute);
  add("Abs", nullptr, fail_to_compute);
  add("Square", nullptr, allocate_too_much);
  add("Sign", nullptr, ask_for_stream);
  add("Exp", nullptr, assign_to_no_variable);
}
