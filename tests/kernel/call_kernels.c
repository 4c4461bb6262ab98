/* Kernels on the host that show what a call of theirs does: tests/kernel/test_calls.py. */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "offering.h"

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

static void destroy(void* kernel) {
  ++state.deleted;
  free(kernel);
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
  end(context, status);
}

static void call_two(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  add(context, 0, 1, status);
  if (TF_GetCode(status) == TF_OK) add(context, 1, 2, status);
  end(context, status);
}

static void call_identity(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  TF_Tensor* tensor = input(context, 0, status);
  TF_SetOutput(context, 0, tensor, status);
  TF_DeleteTensor(tensor);
  end(context, status);
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
  end(context, status);
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
  end(context, status);
}

static void call_state(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  TF_Tensor* to = TF_AllocateOutput(context, 0, TF_INT64, NULL, 0, sizeof(int64_t), status);
  if (to != NULL) *(int64_t*)TF_TensorData(to) = (int64_t)&state;
  TF_DeleteTensor(to);
  end(context, status);
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
  end(context, status);
}

__attribute__((visibility("default"))) void TF_InitKernel(void) {
  offer("CallState", make, call_state, destroy, "oaddress: int64", NULL);
  offer("CallNothing", make, call_nothing, destroy, NULL);
  offer("CallOneMore", make, call_one_more, destroy, "ix: float", "oy: float", NULL);
  offer("CallTwo", make, call_two, destroy, "ix: float", "oy: float", "oz: float", NULL);
  offer("CallIdentity", make, call_identity, destroy, "ix: float", "oy: float", NULL);
  offer("CallSlow", make, call_slow, destroy, "ix: float", "oy: float", NULL);
  offer("CallRetain", make, call_retain, destroy, "ix: float", NULL);
  offer("CallRelease", make, call_release, destroy, NULL);
  offer("CallFail", make, call_fail, destroy, "ix: float", "oy: float", NULL);
  offer("CallOwnMemory", make, call_own_memory, destroy, "oy: float", NULL);
}
