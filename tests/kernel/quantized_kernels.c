/* Kernels of quantized operations, signed and scaled: test_quantized_calls.py. One step of a quantized
 * type is the larger bound of its range by the type's largest value. */
#include <math.h>
#include <stddef.h>

#include "modular_tf/kernels.h"
#include "modular_tf/ops.h"

enum { MOST_INPUTS = 6, MOST_OUTPUTS = 3 };

typedef struct {
  TF_OpKernelContext* context;
  TF_Status* status;
  TF_Tensor* in[MOST_INPUTS];
  TF_Tensor* out[MOST_OUTPUTS];
} Call;

static void begin(Call* call, TF_OpKernelContext* context, int inputs) {
  *call = (Call){.context = context, .status = TF_NewStatus()};
  for (int i = 0; i < inputs; ++i) TF_GetInput(context, i, &call->in[i], call->status);
}

static void* output(Call* call, int index, TF_DataType type, const int64_t* dims, int rank,
                    int64_t bytes) {
  call->out[index] =
      TF_AllocateOutput(call->context, index, type, dims, rank, (size_t)bytes, call->status);
  return TF_TensorData(call->out[index]);
}

static void set_range(Call* call, float bound) {
  *(float*)output(call, 1, TF_FLOAT, NULL, 0, 4) = -bound;
  *(float*)output(call, 2, TF_FLOAT, NULL, 0, 4) = bound;
}

static void end(Call* call) {
  for (int i = 0; i < MOST_INPUTS; ++i) TF_DeleteTensor(call->in[i]);
  for (int i = 0; i < MOST_OUTPUTS; ++i) TF_DeleteTensor(call->out[i]);
  TF_DeleteStatus(call->status);
}

static float number(const Call* call, int index) { return *(float*)TF_TensorData(call->in[index]); }

static float bound_of(const Call* call, int low) {
  return fmaxf(fabsf(number(call, low)), fabsf(number(call, low + 1)));
}

static void* like_first(Call* call, TF_DataType type, int64_t size, int64_t* count) {
  int64_t dims[8];
  const int rank = TF_NumDims(call->in[0]);
  for (int i = 0; i < rank; ++i) dims[i] = TF_Dim(call->in[0], i);
  *count = TF_TensorElementCount(call->in[0]);
  return output(call, 0, type, dims, rank, *count * size);
}

static int8_t rounded(float value) { return (int8_t)fmaxf(-127, fminf(127, nearbyintf(value))); }

static void quantize(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  Call call;
  int64_t count;
  begin(&call, context, 3);
  const float bound = bound_of(&call, 1);
  const float* from = TF_TensorData(call.in[0]);
  int8_t* to = like_first(&call, TF_QINT8, 1, &count);
  for (int64_t i = 0; i < count; ++i) to[i] = rounded(from[i] / bound * 127);
  set_range(&call, bound);
  end(&call);
}

static void dequantize(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  Call call;
  int64_t count;
  begin(&call, context, 3);
  const float step = bound_of(&call, 1) / 127;
  const int8_t* from = TF_TensorData(call.in[0]);
  float* to = like_first(&call, TF_FLOAT, 4, &count);
  for (int64_t i = 0; i < count; ++i) to[i] = (float)from[i] * step;
  end(&call);
}

static void requantize(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  Call call;
  int64_t count;
  begin(&call, context, 5);
  const double step = bound_of(&call, 1) / 2147483647.0;
  const float bound = bound_of(&call, 3);
  const int32_t* from = TF_TensorData(call.in[0]);
  int8_t* to = like_first(&call, TF_QINT8, 1, &count);
  for (int64_t i = 0; i < count; ++i) to[i] = rounded((float)(from[i] * step / bound * 127));
  set_range(&call, bound);
  end(&call);
}

/* The bound of a product's 32 bits: so many of its steps, each a product of two steps. */
static float product_bound(const Call* call) {
  return (float)((double)bound_of(call, 2) / 127 * bound_of(call, 4) / 127 * 2147483647.0);
}

static void multiply(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  Call call;
  begin(&call, context, 6);
  const int8_t *a = TF_TensorData(call.in[0]), *b = TF_TensorData(call.in[1]);
  const int64_t dims[] = {TF_Dim(call.in[0], 0), TF_Dim(call.in[1], 1)};
  const int64_t inner = TF_Dim(call.in[0], 1);
  int32_t* to = output(&call, 0, TF_QINT32, dims, 2, dims[0] * dims[1] * 4);
  for (int64_t row = 0; row < dims[0]; ++row) {
    for (int64_t column = 0; column < dims[1]; ++column) {
      int32_t sum = 0;
      for (int64_t i = 0; i < inner; ++i) sum += a[row * inner + i] * b[i * dims[1] + column];
      to[row * dims[1] + column] = sum;
    }
  }
  set_range(&call, product_bound(&call));
  end(&call);
}

static void offer(const char* op, void (*compute)(void*, TF_OpKernelContext*), const char* first,
                  TF_DataType type, const char* second, TF_DataType other) {
  TF_Status* status = TF_NewStatus();
  TF_KernelBuilder* builder = TF_NewKernelBuilder(op, "CPU", NULL, compute, NULL);
  TF_KernelBuilder_TypeConstraint(builder, first, type, status);
  if (second != NULL) TF_KernelBuilder_TypeConstraint(builder, second, other, status);
  TF_RegisterKernelBuilder(op, builder, status);
  TF_DeleteStatus(status);
}

__attribute__((visibility("default"))) void TF_InitKernel(void) {
  offer("QuantizeV2", quantize, "T", TF_QINT8, NULL, TF_QINT8);
  offer("Dequantize", dequantize, "T", TF_QINT8, NULL, TF_QINT8);
  offer("Requantize", requantize, "Tinput", TF_QINT32, "out_type", TF_QINT8);
  offer("QuantizedMatMul", multiply, "T1", TF_QINT8, "T2", TF_QINT8);
}
