// Kernels that throw in every function which the host calls, and keep what they were given.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <stdexcept>

#include "modular_tf/kernels_experimental.h"
#include "modular_tf/ops.h"

namespace {

std::atomic<int> deleted_null{0};
TF_Tensor* kept = nullptr;
TF_AsyncOpKernelDoneCallback* kept_done = nullptr;
TF_OpKernelContext* kept_context = nullptr;
std::atomic<int> live_objects{0};
alignas(64) char memory[64];

void throwing_deallocator(void*, size_t, void*) { throw std::runtime_error("no memory of mine"); }
void throwing_number(void*, size_t, void*) { throw 42; }

void end(TF_OpKernelContext* context, TF_Status* status) {
  if (TF_GetCode(status) != TF_OK) TF_OpKernelContext_Failure(context, status);
  TF_DeleteStatus(status);
}

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

void read_value(void*, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor* tensor = nullptr;
  TF_GetInputTensorFromVariable(context, 0, false, false, false, copy, &tensor, status);
  if (TF_GetCode(status) == TF_OK) TF_SetOutput(context, 0, tensor, status);
  TF_DeleteTensor(tensor);
  end(context, status);
}

void keep(TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_DeleteTensor(kept);
  kept = nullptr;
  TF_GetInput(context, 0, &kept, status);
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

void define(const char* name, const char* first, const char* second, const char* output) {
  TF_Status* status = TF_NewStatus();
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name);
  if (first != nullptr) TF_OpDefinitionBuilderAddInput(op, first);
  if (second != nullptr) TF_OpDefinitionBuilderAddInput(op, second);
  if (output != nullptr) TF_OpDefinitionBuilderAddOutput(op, output);
  TF_RegisterOpDefinition(op, status);
  TF_DeleteStatus(status);
}

void offer(const char* name, TF_KernelBuilder* builder) {
  TF_Status* status = TF_NewStatus();
  TF_RegisterKernelBuilder(name, builder, status);
  TF_DeleteStatus(status);
}

void offer(const char* name, const char* first, const char* second, const char* output,
           void (*compute)(void*, TF_OpKernelContext*), void* (*its_create)(TF_OpKernelConstruction*) = nullptr,
           void (*its_delete)(void*) = nullptr) {
  define(name, first, second, output);
  offer(name, TF_NewKernelBuilder(name, "CPU", its_create, compute, its_delete));
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
  const char *value = "value: float", *variable = "variable: resource";
  offer("MtfGiveBackThrowing", nullptr, nullptr, nullptr, give_back_throwing);
  offer("MtfGiveBackThrowingNumber", nullptr, nullptr, nullptr, give_back_throwing_number);
  offer("MtfOutputOfThrowing", nullptr, nullptr, "output: float", output_of_throwing);
  offer("MtfAssignThrowing", variable, value, nullptr, assign<throwing_copy>);
  offer("MtfAssignThrowingNumber", variable, value, nullptr, assign<throwing_copy_of_number>);
  offer("MtfUpdateThrowing", variable, value, nullptr, update);
  offer("MtfTemporaryThrowing", nullptr, nullptr, "output: Ref(float)", temporary);
  offer("MtfLockAndThrow", variable, nullptr, nullptr, lock_and_throw);
  offer("MtfReadValue", variable, nullptr, value, read_value);
  offer("MtfKeepAndFail", value, nullptr, nullptr, keep_and_fail);
  offer("MtfKeepAndThrow", value, nullptr, nullptr, keep_and_throw);
  offer("MtfLetGo", value, nullptr, nullptr, let_go);
  offer("MtfThrowingCreate", nullptr, nullptr, nullptr, nothing, throwing_create, count_null);
  offer("MtfAsk", nullptr, nullptr, nullptr, ask);
  define("MtfKeepAndFailLater", value, nullptr, nullptr);
  offer("MtfKeepAndFailLater",
        TF_NewAsyncKernelBuilder("MtfKeepAndFailLater", "CPU", nullptr, keep_and_fail_later, nullptr));
  define("MtfNeverDone", value, nullptr, "output: float");
  offer("MtfNeverDone",
        TF_NewAsyncKernelBuilder("MtfNeverDone", "CPU", create, never_done, delete_object));
}
