/* Kernels of quantized operations, signed and scaled: test_quantized_calls.py. One step of a quantized
 * type is the larger bound of its range by the type's largest value. */
#include <math.h>

#include "offering.h"

enum { INPUTS = 3, OUTPUTS = 3 };

typedef struct {
  TF_OpKernelContext* context;
  TF_Status* status;
  TF_Tensor* in[INPUTS];
  TF_Tensor* out[OUTPUTS];
} Call;

static void begin(Call* call, TF_OpKernelContext* context) {
  *call = (Call){.context = context, .status = TF_NewStatus()};
  for (int i = 0; i < INPUTS; ++i) call->in[i] = input(context, i, call->status);
}

static void* output(Call* call, int index, TF_DataType type, const int64_t* dims, int rank,
                    int64_t bytes) {
  call->out[index] =
      TF_AllocateOutput(call->context, index, type, dims, rank, (size_t)bytes, call->status);
  return TF_TensorData(call->out[index]);
}

static void leave(Call* call) {
  for (int i = 0; i < INPUTS; ++i) TF_DeleteTensor(call->in[i]);
  for (int i = 0; i < OUTPUTS; ++i) TF_DeleteTensor(call->out[i]);
  end(call->context, call->status);
}

static float number(const Call* call, int index) { return *(float*)TF_TensorData(call->in[index]); }

static float bound_of(const Call* call) { return fmaxf(fabsf(number(call, 1)), fabsf(number(call, 2))); }

static void* like_first(Call* call, TF_DataType type, int64_t size, int64_t* count) {
  int64_t dims[8];
  const int rank = TF_NumDims(call->in[0]);
  for (int i = 0; i < rank; ++i) dims[i] = TF_Dim(call->in[0], i);
  *count = TF_TensorElementCount(call->in[0]);
  return output(call, 0, type, dims, rank, *count * size);
}

static void quantize(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  Call call;
  int64_t count;
  begin(&call, context);
  const float bound = bound_of(&call);
  const float* from = TF_TensorData(call.in[0]);
  int8_t* to = like_first(&call, TF_QINT8, 1, &count);
  for (int64_t i = 0; i < count; ++i) to[i] = (int8_t)nearbyintf(from[i] / bound * 127);
  *(float*)output(&call, 1, TF_FLOAT, NULL, 0, 4) = -bound;
  *(float*)output(&call, 2, TF_FLOAT, NULL, 0, 4) = bound;
  leave(&call);
}

static void dequantize(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  Call call;
  int64_t count;
  begin(&call, context);
  const float step = bound_of(&call) / 127;
  const int8_t* from = TF_TensorData(call.in[0]);
  float* to = like_first(&call, TF_FLOAT, 4, &count);
  for (int64_t i = 0; i < count; ++i) to[i] = (float)from[i] * step;
  leave(&call);
}

__attribute__((visibility("default"))) void TF_InitKernel(void) {
  enter_for("QuantizeV2", TF_QINT8, quantize);
  enter_for("Dequantize", TF_QINT8, dequantize);
}
