/* Kernels of a standard operation and of its counterpart for another type: test_aliased_calls.py. */
#include "offering.h"

/* An output like input 0, which holds a number; a scalar is refused. */
static void compute(TF_OpKernelContext* context, float number) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor* from = input(context, 0, status);
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
  end(context, status);
}

static void compute_own(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  compute(context, 1);
}

static void compute_counterpart(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  compute(context, 2);
}

__attribute__((visibility("default"))) void TF_InitKernel(void) {
  const char *attr = "aT: {half, float, double}", *features = "ifeatures: T";
  define("_ITEXElu", attr, features, "oactivations: T", NULL);
  define("_ITEXSoftmax", attr, features, "oactivations: T", NULL);
  enter_for("Elu", TF_DOUBLE, compute_own);
  enter_for("_ITEXElu", TF_FLOAT, compute_counterpart);
  enter_for("_ITEXElu", TF_DOUBLE, compute_counterpart);
  enter_for("_ITEXSoftmax", TF_FLOAT, compute_counterpart);
}
