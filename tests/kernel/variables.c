/* Kernels that use every function for variables, on float32 of the host. */
#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include "modular_tf/kernels_experimental.h"
#include "offering.h"

static void copy(TF_OpKernelContext* context, TF_Tensor* source, TF_Tensor* dest) {
  (void)context;
  memcpy(TF_TensorData(dest), TF_TensorData(source), TF_TensorByteSize(source));
}

static void change(TF_OpKernelContext* context, TF_Tensor* tensor, TF_Tensor* value, int operation) {
  (void)context;
  float* to = TF_TensorData(tensor);
  const float* from = TF_TensorData(value);
  for (int64_t index = 0; index < TF_TensorElementCount(tensor); ++index) {
    to[index] += operation == 0 ? from[index] : -from[index];
  }
}

static void assign(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  TF_AssignVariable(context, 0, 1, true, copy, status);
  end(context, status);
}

static void reassign(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  TF_AssignVariable(context, 0, 1, false, copy, status);
  end(context, status);
}

static void add(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  TF_AssignUpdateVariable(context, 0, 1, 0, 0, copy, change, status);
  end(context, status);
}

static void subtract(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  TF_AssignUpdateVariable(context, 0, 1, 1, 0, copy, change, status);
  end(context, status);
}

static void read_value(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  TF_Tensor* tensor = NULL;
  TF_GetInputTensorFromVariable(context, 0, false, false, false, copy, &tensor, status);
  if (TF_GetCode(status) == TF_OK) TF_SetOutput(context, 0, tensor, status);
  TF_DeleteTensor(tensor);
  end(context, status);
}

/* Adds the value to both variables in place, with both locked. One of them may be the other. */
static void add_to_both(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  TF_VariableInputLockHolder* holder = NULL;
  const int inputs[] = {1, 0};
  TF_Tensor* value = NULL;
  TF_GetInputByName(context, "value", &value, status);
  TF_MaybeLockVariableInputMutexesInOrder(context, true, false, inputs, 2, copy, &holder, status);
  for (int index = 0; index < 2 && TF_GetCode(status) == TF_OK; ++index) {
    TF_Tensor* tensor = NULL;
    TF_GetInputTensorFromVariable(context, index, true, false, false, copy, &tensor, status);
    if (TF_GetCode(status) == TF_OK) change(context, tensor, value, 0);
    TF_DeleteTensor(tensor);
  }
  TF_ReleaseVariableInputLockHolder(holder);
  TF_DeleteTensor(value);
  end(context, status);
}

/* Locks the first one, then the other, each by itself. */
static void lock_apart(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  TF_VariableInputLockHolder* holders[2] = {NULL, NULL};
  for (int index = 0; index < 2; ++index) {
    TF_MaybeLockVariableInputMutexesInOrder(context, true, false, &index, 1, copy, &holders[index], status);
    if (TF_GetCode(status) != TF_OK) break;
    const struct timespec wait = {0, 300000000};
    nanosleep(&wait, NULL);
  }
  for (int index = 0; index < 2; ++index) TF_ReleaseVariableInputLockHolder(holders[index]);
  end(context, status);
}

/* Locks, and leaves without unlocking. */
static void keep_locked(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  TF_VariableInputLockHolder* holder = NULL;
  const int inputs[] = {0};
  TF_MaybeLockVariableInputMutexesInOrder(context, true, false, inputs, 1, copy, &holder, status);
  end(context, status);
}

static TF_AsyncOpKernelDoneCallback* kept_done;
static TF_Tensor* kept_value;

/* Locks, and is not done until `let_go` runs. */
static void lock_until_let_go(void* kernel, TF_OpKernelContext* context, TF_AsyncOpKernelDoneCallback* done) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  TF_VariableInputLockHolder* holder = NULL;
  const int inputs[] = {0};
  TF_MaybeLockVariableInputMutexesInOrder(context, true, false, inputs, 1, copy, &holder, status);
  TF_GetInputTensorFromVariable(context, 0, true, false, false, copy, &kept_value, status);
  TF_DeleteStatus(status);
  kept_done = done;
}

/* Writes to the variable that `lock_until_let_go` keeps locked, and ends that kernel. */
__attribute__((visibility("default"))) void end_interrupted(void);
void end_interrupted(void) {
  *(float*)TF_TensorData(kept_value) = 99;
  TF_DeleteTensor(kept_value);
  TF_RunAsyncOpKernelDoneCallback(kept_done);
}

static void let_go(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  (void)context;
  end_interrupted();
}

static void forward_reference(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_OpKernelContext_ForwardRefInputToRefOutput(context, 0, 0);
}

static void assign_reference(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  if (!TF_IsRefInput(context, 0, status) || TF_IsRefInput(context, 1, status)) {
    TF_SetStatus(status, TF_INTERNAL, "input 0 is the reference, and input 1 is none");
  } else {
    TF_OpKernelContext_ForwardRefInputToRefOutput(context, 0, 0);
    TF_AssignRefVariable(context, 0, 0, 1, true, true, copy, status);
  }
  end(context, status);
}

static void allocate(TF_OpKernelContext* context, TF_Tensor* tensor, TF_DataType type,
                     const int64_t* dims, int num_dims, TF_Status* status) {
  TF_Tensor* made = TF_AllocateTemp(context, type, dims, num_dims, NULL, status);
  if (TF_GetCode(status) != TF_OK) return;
  memset(TF_TensorData(made), 0, TF_TensorByteSize(made));
  TF_TensorBitcastFrom(made, type, tensor, dims, num_dims, status);
  TF_DeleteTensor(made);
}

static void temporary(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  const int64_t dims[] = {3};
  TF_StringView name = {"temporary", 9};
  TF_TemporaryVariable(context, TF_FLOAT, dims, 1, &name, allocate, status);
  end(context, status);
}

static void end_temporary(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  TF_StringView name = {"temporary", 9};
  TF_DestroyTemporaryVariable(context, 0, &name, status);
  end(context, status);
}

void TF_InitKernel(void) {
  const char *variable = "ivariable: resource", *value = "ivalue: float";
  const char *one = "ione: resource", *other = "iother: resource", *reference = "ivariable: Ref(float)";
  offer("MtfAssign", NULL, assign, NULL, variable, value, NULL);
  offer("MtfReassign", NULL, reassign, NULL, variable, value, NULL);
  offer("MtfAdd", NULL, add, NULL, variable, value, NULL);
  offer("MtfSubtract", NULL, subtract, NULL, variable, value, NULL);
  offer("MtfRead", NULL, read_value, NULL, variable, "ovalue: float", NULL);
  offer("MtfAddToBoth", NULL, add_to_both, NULL, one, other, value, NULL);
  offer("MtfKeepLocked", NULL, keep_locked, NULL, variable, NULL);
  offer("MtfLockApart", NULL, lock_apart, NULL, one, other, value, NULL);
  offer_asynchronous("MtfLockUntilLetGo", NULL, lock_until_let_go, NULL, variable, NULL);
  offer("MtfLetGo", NULL, let_go, NULL, NULL);
  offer("MtfForwardReference", NULL, forward_reference, NULL, reference, "ooutput: Ref(float)", NULL);
  offer("MtfAssignReference", NULL, assign_reference, NULL, reference, value, "ooutput: Ref(float)", NULL);
  offer("MtfTemporary", NULL, temporary, NULL, "ooutput: Ref(float)", NULL);
  offer("MtfEndTemporary", NULL, end_temporary, NULL, reference, "ooutput: float", NULL);
}
