/* Kernels on the host that show what a call of theirs does: tests/kernel/test_calls.py. */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "modular_tf/kernels.h"
#include "modular_tf/ops.h"

/* What tests read and set; CallState tells them where it is. */
static struct {
  atomic_int created, deleted, deallocated, started, may_end, aborts, fails;
  void* last_input;
} state = {.may_end = 1};

static TF_Tensor* retained;

static void* make(TF_OpKernelConstruction* construction) {
  (void)construction;
  ++state.created;
  return malloc(1);
}

static void end(void* kernel) {
  ++state.deleted;
  free(kernel);
}

static void fail(TF_OpKernelContext* context, TF_Status* status) {
  if (TF_GetCode(status) != TF_OK) TF_OpKernelContext_Failure(context, status);
  TF_DeleteStatus(status);
}

static TF_Tensor* input(TF_OpKernelContext* context, int index, TF_Status* status) {
  TF_Tensor* tensor = NULL;
  TF_GetInput(context, index, &tensor, status);
  return tensor;
}

/* An output like input 0, whose numbers are those plus `more`. */
static void add(TF_OpKernelContext* context, int index, float more, TF_Status* status) {
  TF_Tensor* from = input(context, 0, status);
  if (TF_GetCode(status) != TF_OK) return;
  int64_t dims[16];
  const int candidate = 0, rank = TF_NumDims(from);
  const int64_t count = TF_TensorElementCount(from);
  for (int i = 0; i < rank; ++i) dims[i] = TF_Dim(from, i);
  const float* source = state.last_input = TF_TensorData(from);
  TF_DeleteTensor(from); /* else it is not forwarded */
  TF_Tensor* to = TF_ForwardInputOrAllocateOutput(context, &candidate, 1, index, dims, rank, NULL,
                                                  status);
  if (TF_GetCode(status) != TF_OK) return;
  float* target = TF_TensorData(to);
  for (int64_t i = 0; i < count; ++i) target[i] = source[i] + more;
  TF_DeleteTensor(to);
}

static void call_nothing(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  (void)context;
}

static void call_one_more(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  add(context, 0, 1, status);
  fail(context, status);
}

static void call_two(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  add(context, 0, 1, status);
  if (TF_GetCode(status) == TF_OK) add(context, 1, 2, status);
  fail(context, status);
}

static void call_identity(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  TF_Tensor* tensor = input(context, 0, status);
  TF_SetOutput(context, 0, tensor, status);
  TF_DeleteTensor(tensor);
  fail(context, status);
}

/* Does not return before a test lets it. */
static void call_slow(void* kernel, TF_OpKernelContext* context) {
  call_one_more(kernel, context);
  ++state.started;
  while (!state.may_end) sched_yield();
}

static void call_retain(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  retained = input(context, 0, status);
  if (state.fails) TF_SetStatus(status, TF_OUT_OF_RANGE, "as asked");
  fail(context, status);
}

static void call_release(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  (void)context;
  TF_DeleteTensor(retained);
  retained = NULL;
}

static void call_fail(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  TF_SetStatus(status, TF_OUT_OF_RANGE, "as asked");
  fail(context, status);
}

static void call_state(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  TF_Tensor* to = TF_AllocateOutput(context, 0, TF_INT64, NULL, 0, sizeof(int64_t), status);
  if (to != NULL) *(int64_t*)TF_TensorData(to) = (int64_t)&state;
  TF_DeleteTensor(to);
  fail(context, status);
}

static void deallocate(void* data, size_t len, void* argument) {
  (void)len;
  (void)argument;
  if (state.aborts) abort();
  ++state.deallocated;
  free(data);
}

/* An output in memory of the plugin's own. */
static void call_own_memory(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  const int64_t dims[] = {3};
  float* data = aligned_alloc(64, 64);
  for (int i = 0; i < 3; ++i) data[i] = (float)i;
  TF_Tensor* made = TF_NewTensor(TF_FLOAT, dims, 1, data, 12, deallocate, NULL);
  TF_SetOutput(context, 0, made, status);
  TF_DeleteTensor(made);
  fail(context, status);
}

static void offer(const char* name, const char* in, const char* out, const char* more,
                  void (*compute)(void*, TF_OpKernelContext*), TF_Status* status) {
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name);
  if (in != NULL) TF_OpDefinitionBuilderAddInput(op, in);
  if (out != NULL) TF_OpDefinitionBuilderAddOutput(op, out);
  if (more != NULL) TF_OpDefinitionBuilderAddOutput(op, more);
  TF_OpDefinitionBuilderSetIsStateful(op, true);
  TF_RegisterOpDefinition(op, status);
  TF_KernelBuilder* builder = TF_NewKernelBuilder(name, "CPU", make, compute, end);
  TF_RegisterKernelBuilder(name, builder, status);
}

__attribute__((visibility("default"))) void TF_InitKernel(void) {
  TF_Status* status = TF_NewStatus();
  offer("CallState", NULL, "address: int64", NULL, call_state, status);
  offer("CallNothing", NULL, NULL, NULL, call_nothing, status);
  offer("CallOneMore", "x: float", "y: float", NULL, call_one_more, status);
  offer("CallTwo", "x: float", "y: float", "z: float", call_two, status);
  offer("CallIdentity", "x: float", "y: float", NULL, call_identity, status);
  offer("CallSlow", "x: float", "y: float", NULL, call_slow, status);
  offer("CallRetain", "x: float", NULL, NULL, call_retain, status);
  offer("CallRelease", NULL, NULL, NULL, call_release, status);
  offer("CallFail", "x: float", "y: float", NULL, call_fail, status);
  offer("CallOwnMemory", NULL, "y: float", NULL, call_own_memory, status);
  TF_DeleteStatus(status);
}
