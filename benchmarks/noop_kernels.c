/* Kernels that do next to nothing, for benchmarks/kernels.py: what is left is the host's. */
#include "modular_tf/kernels.h"
#include "modular_tf/ops.h"

static void nothing(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  (void)context;
}

/* One number, whatever comes in. */
static void tiny(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  TF_Tensor* output = TF_AllocateOutput(context, 0, TF_FLOAT, NULL, 0, sizeof(float), status);
  if (TF_GetCode(status) == TF_OK) {
    *(float*)TF_TensorData(output) = 1;
  } else {
    TF_OpKernelContext_Failure(context, status);
  }
  TF_DeleteTensor(output);
  TF_DeleteStatus(status);
}

/* The input's memory where that is given away, else as much. */
static void forwarded(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  TF_Tensor *input = NULL, *output = NULL;
  const int candidate = 0;
  TF_GetInput(context, 0, &input, status);
  if (TF_GetCode(status) == TF_OK) {
    const int64_t dims[] = {TF_TensorElementCount(input)};
    output = TF_ForwardInputOrAllocateOutput(context, &candidate, 1, 0, dims, 1, NULL, status);
  }
  if (TF_GetCode(status) != TF_OK) TF_OpKernelContext_Failure(context, status);
  TF_DeleteTensor(input);
  TF_DeleteTensor(output);
  TF_DeleteStatus(status);
}

static void define(const char* name, int n_inputs, int n_outputs, TF_Status* status) {
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name);
  if (n_inputs > 0) TF_OpDefinitionBuilderAddInput(op, "x: float");
  if (n_outputs > 0) TF_OpDefinitionBuilderAddOutput(op, "y: float");
  TF_OpDefinitionBuilderSetIsStateful(op, true);
  TF_RegisterOpDefinition(op, status);
}

static void add(const char* name, void (*compute)(void*, TF_OpKernelContext*), TF_Status* status) {
  TF_RegisterKernelBuilder(name, TF_NewKernelBuilder(name, "CPU", NULL, compute, NULL), status);
}

void TF_InitKernel(void) {
  TF_Status* status = TF_NewStatus();
  define("BenchmarkNothing", 0, 0, status);
  define("BenchmarkTiny", 1, 1, status);
  define("BenchmarkForwarded", 1, 1, status);
  add("BenchmarkNothing", nothing, status);
  add("BenchmarkTiny", tiny, status);
  add("BenchmarkForwarded", forwarded, status);
  TF_DeleteStatus(status);
}
