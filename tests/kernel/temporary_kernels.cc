// An asynchronous kernel that gives a temporary back on a thread of its own: test_given_back_memory.py.
#include <atomic>
#include <thread>

#include "offering.h"

// How many threads have begun and not ended.
extern "C" __attribute__((visibility("default"))) std::atomic<int> temporary_kernels_running;
std::atomic<int> temporary_kernels_running;

namespace {

struct Kernel {
  bool is_late;  // whether the temporary goes after `done`
};

void* create(TF_OpKernelConstruction* construction) {
  TF_Status* status = TF_NewStatus();
  unsigned char is_late = 0;
  TF_OpKernelConstruction_GetAttrBool(construction, "late", &is_late, status);
  TF_DeleteStatus(status);
  return new Kernel{is_late != 0};
}

void destroy(void* kernel) { delete static_cast<Kernel*>(kernel); }

void compute(void* object, TF_OpKernelContext* context, TF_AsyncOpKernelDoneCallback* done) {
  const bool is_late = static_cast<Kernel*>(object)->is_late;
  ++temporary_kernels_running;
  std::thread([context, done, is_late] {
    TF_Status* status = TF_NewStatus();
    const int64_t count = 1000;
    TF_DeleteTensor(TF_AllocateOutput(context, 0, TF_FLOAT, &count, 1, 0, status));
    TF_Tensor* temporary = TF_AllocateTemp(context, TF_FLOAT, &count, 1, nullptr, status);
    TF_DeleteStatus(status);
    if (is_late) TF_RunAsyncOpKernelDoneCallback(done);
    TF_DeleteTensor(temporary);
    if (!is_late) TF_RunAsyncOpKernelDoneCallback(done);
    --temporary_kernels_running;
  }).detach();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void TF_InitKernel() {
  offer_asynchronous("MtfTemporaryInThread", create, compute, destroy, "alate: bool = false", "oy: float",
                     nullptr);
}
