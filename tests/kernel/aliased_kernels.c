/* Kernels of a standard operation and of its counterpart for another type: test_aliased_calls.py. */
#include <stddef.h>

#include "modular_tf/kernels.h"
#include "modular_tf/ops.h"

/* An output like input 0, which holds a number; a scalar is refused. */
static void compute(TF_OpKernelContext* context, float number) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor* from = NULL;
  TF_GetInput(context, 0, &from, status);
  const int64_t count = TF_TensorElementCount(from);
  if (TF_NumDims(from) != 1) {
    TF_SetStatus(status, TF_INVALID_ARGUMENT, "expected a vector");
  } else {
    TF_Tensor* to = TF_AllocateOutput(context, 0, TF_TensorType(from), &count, 1, 0, status);
    for (int64_t i = 0; to != NULL && i < count; ++i) {
      if (TF_TensorType(to) == TF_FLOAT) ((float*)TF_TensorData(to))[i] = number;
      if (TF_TensorType(to) == TF_DOUBLE) ((double*)TF_TensorData(to))[i] = number;
    }
    TF_DeleteTensor(to);
  }
  TF_DeleteTensor(from);
  if (TF_GetCode(status) != TF_OK) TF_OpKernelContext_Failure(context, status);
  TF_DeleteStatus(status);
}

static void compute_own(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  compute(context, 1);
}

static void compute_counterpart(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  compute(context, 2);
}

static void offer(const char* op, TF_DataType type, void (*its)(void*, TF_OpKernelContext*)) {
  TF_Status* status = TF_NewStatus();
  TF_KernelBuilder* builder = TF_NewKernelBuilder(op, "CPU", NULL, its, NULL);
  TF_KernelBuilder_TypeConstraint(builder, "T", type, status);
  TF_RegisterKernelBuilder(op, builder, status);
  TF_DeleteStatus(status);
}

static void define(const char* name) {
  TF_Status* status = TF_NewStatus();
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name);
  TF_OpDefinitionBuilderAddAttr(op, "T: {half, float, double}");
  TF_OpDefinitionBuilderAddInput(op, "features: T");
  TF_OpDefinitionBuilderAddOutput(op, "activations: T");
  TF_RegisterOpDefinition(op, status);
  TF_DeleteStatus(status);
}

__attribute__((visibility("default"))) void TF_InitKernel(void) {
  define("_ITEXElu");
  define("_ITEXSoftmax");
  offer("Elu", TF_DOUBLE, compute_own);
  offer("_ITEXElu", TF_FLOAT, compute_counterpart);
  offer("_ITEXElu", TF_DOUBLE, compute_counterpart);
  offer("_ITEXSoftmax", TF_FLOAT, compute_counterpart);
}
