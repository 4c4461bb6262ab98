// Kernels that throw in every function which the host calls, and keep what they were given.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <stdexcept>

#include "modular_tf/kernels_experimental.h"
#include "offering.h"

namespace {

std::atomic<int> deleted_null{0};
TF_Tensor* kept = nullptr;
TF_AsyncOpKernelDoneCallback* kept_done = nullptr;
TF_OpKernelContext* kept_context = nullptr;
std::atomic<int> live_objects{0};
alignas(64) char memory[64];

void throwing_deallocator(void*, size_t, void*) { throw std::runtime_error("no memory of mine"); }
void throwing_number(void*, size_t, void*) { throw 42; }

void give_back(TF_OpKernelContext* context, void (*deallocator)(void*, size_t, void*)) {
  const int64_t dims[] = {16};
  TF_Tensor* tensor = TF_NewTensor(TF_FLOAT, dims, 1, memory, sizeof memory, deallocator, nullptr);
  TF_DeleteTensor(tensor);
  (void)context;
}

void give_back_throwing(void*, TF_OpKernelContext* context) { give_back(context, throwing_deallocator); }
void give_back_throwing_number(void*, TF_OpKernelContext* context) { give_back(context, throwing_number); }

void output_of_throwing(void*, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  const int64_t dims[] = {16};
  TF_Tensor* tensor = TF_NewTensor(TF_FLOAT, dims, 1, memory, sizeof memory, throwing_deallocator, nullptr);
  TF_SetOutput(context, 0, tensor, status);
  TF_DeleteTensor(tensor);
  end(context, status);
}

void throwing_copy(TF_OpKernelContext*, TF_Tensor*, TF_Tensor*) { throw std::runtime_error("no copy"); }
void throwing_copy_of_number(TF_OpKernelContext*, TF_Tensor*, TF_Tensor*) { throw 42; }
void copy(TF_OpKernelContext*, TF_Tensor* source, TF_Tensor* dest) {
  std::memcpy(TF_TensorData(dest), TF_TensorData(source), TF_TensorByteSize(source));
}
void throwing_change(TF_OpKernelContext*, TF_Tensor*, TF_Tensor*, int) { throw 42; }
void throwing_allocate(TF_OpKernelContext*, TF_Tensor*, TF_DataType, const int64_t*, int, TF_Status*) {
  throw 42;
}

template <TF_TensorCopy Copy>
void assign(void*, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_AssignVariable(context, 0, 1, false, Copy, status);
  end(context, status);
}

void update(void*, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_AssignUpdateVariable(context, 0, 1, 0, 0, copy, throwing_change, status);
  end(context, status);
}

void temporary(void*, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  const int64_t dims[] = {3};
  TF_StringView name = {"throwing", 8};
  TF_TemporaryVariable(context, TF_FLOAT, dims, 1, &name, throwing_allocate, status);
  end(context, status);
}

void lock_and_throw(void*, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_VariableInputLockHolder* holder = nullptr;
  const int inputs[] = {0};
  TF_MaybeLockVariableInputMutexesInOrder(context, true, false, inputs, 1, copy, &holder, status);
  TF_DeleteStatus(status);
  throw std::runtime_error("locked");
}

void keep(TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_DeleteTensor(kept);
  kept = input(context, 0, status);
  TF_DeleteStatus(status);
}

void keep_and_fail(void*, TF_OpKernelContext* context) {
  keep(context);
  TF_Status* status = TF_NewStatus();
  TF_SetStatus(status, TF_INTERNAL, "kept, and failed");
  end(context, status);
}

void keep_and_throw(void*, TF_OpKernelContext* context) {
  keep(context);
  throw std::runtime_error("kept, and threw");
}

void keep_and_fail_later(void*, TF_OpKernelContext* context, TF_AsyncOpKernelDoneCallback* done) {
  keep_and_fail(nullptr, context);
  TF_RunAsyncOpKernelDoneCallback(done);
}

void let_go(void*, TF_OpKernelContext* context) {
  TF_DeleteTensor(kept);
  kept = nullptr;
  (void)context;
}

void* throwing_create(TF_OpKernelConstruction*) { throw std::runtime_error("no object"); }
void count_null(void* object) { deleted_null += object == nullptr; }
void nothing(void*, TF_OpKernelContext*) {}

void* create(TF_OpKernelConstruction*) {
  ++live_objects;
  return new int(7);
}
void delete_object(void* object) {
  --live_objects;
  delete static_cast<int*>(object);
}
void never_done(void*, TF_OpKernelContext* context, TF_AsyncOpKernelDoneCallback* done) {
  kept_context = context;
  kept_done = done;
}

void ask(void*, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  const int64_t dims[] = {2};
  TF_Tensor* made[] = {
      TF_AllocateTemp(context, TF_FLOAT, dims, -1, nullptr, status),
      TF_AllocateTemp(context, TF_FLOAT, dims, 255, nullptr, status),
      TF_AllocateTemp(context, TF_FLOAT, nullptr, 2, nullptr, status),
  };
  for (TF_Tensor* each : made) {
    if (each != nullptr) TF_SetStatus(status, TF_INTERNAL, "made");
  }
  end(context, status);
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int mtf_test_deleted_null() { return deleted_null; }
EXPORT int mtf_test_live_objects() { return live_objects; }
// What a thread of the plugin does long after: allocate, and say that it is done.
EXPORT int mtf_test_use_and_end() {
  TF_Status* status = TF_NewStatus();
  const int64_t dims[] = {4};
  TF_Tensor* output = TF_AllocateOutput(kept_context, 0, TF_FLOAT, dims, 1, 16, status);
  const int code = TF_GetCode(status);
  TF_DeleteTensor(output);
  TF_DeleteStatus(status);
  TF_RunAsyncOpKernelDoneCallback(kept_done);
  return code;
}

EXPORT void TF_InitKernel() {
  const char *value = "ivalue: float", *variable = "ivariable: resource", *output = "ooutput: float";
  offer("MtfGiveBackThrowing", nullptr, give_back_throwing, nullptr, nullptr);
  offer("MtfGiveBackThrowingNumber", nullptr, give_back_throwing_number, nullptr, nullptr);
  offer("MtfOutputOfThrowing", nullptr, output_of_throwing, nullptr, output, nullptr);
  offer("MtfAssignThrowing", nullptr, assign<throwing_copy>, nullptr, variable, value, nullptr);
  offer("MtfAssignThrowingNumber", nullptr, assign<throwing_copy_of_number>, nullptr, variable, value, nullptr);
  offer("MtfUpdateThrowing", nullptr, update, nullptr, variable, value, nullptr);
  offer("MtfTemporaryThrowing", nullptr, temporary, nullptr, "ooutput: Ref(float)", nullptr);
  offer("MtfLockAndThrow", nullptr, lock_and_throw, nullptr, variable, nullptr);
  offer("MtfKeepAndFail", nullptr, keep_and_fail, nullptr, value, nullptr);
  offer("MtfKeepAndThrow", nullptr, keep_and_throw, nullptr, value, nullptr);
  offer("MtfLetGo", nullptr, let_go, nullptr, value, nullptr);
  offer("MtfThrowingCreate", throwing_create, nothing, count_null, nullptr);
  offer("MtfAsk", nullptr, ask, nullptr, nullptr);
  offer_asynchronous("MtfKeepAndFailLater", nullptr, keep_and_fail_later, nullptr, value, nullptr);
  offer_asynchronous("MtfNeverDone", create, never_done, delete_object, value, output, nullptr);
}
