/* What the functions of outputs and temporaries answer. */
#include <string.h>

#include "probe.h"

static const int64_t kTwo[] = {2};
static const int64_t kTwoByThree[] = {2, 3};

static TF_Tensor* allocate(TF_OpKernelContext* context, const char* when, int index,
                           TF_DataType type, const int64_t* dims, int rank, size_t length) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor* made = TF_AllocateOutput(context, index, type, dims, rank, length, status);
  record_status(text("TF_AllocateOutput %s", when), status, "%s", described(made));
  TF_DeleteStatus(status);
  return made;
}

static void allocate_and_drop(TF_OpKernelContext* context, const char* when, int index,
                              TF_DataType type, const int64_t* dims, int rank, size_t length) {
  TF_DeleteTensor(allocate(context, when, index, type, dims, rank, length));
}

static void probe_allocate(TF_OpKernelContext* context) {
  allocate_and_drop(context, "index -1", -1, TF_FLOAT, kTwo, 1, 8);
  allocate_and_drop(context, "index 1 of 1", 1, TF_FLOAT, kTwo, 1, 8);
  TF_Tensor* made = allocate(context, "other type and bytes", 0, TF_INT64, kTwoByThree, 2, 1);
  allocate_and_drop(context, "twice", 0, TF_FLOAT, kTwo, 1, 8);
  record("TF_TensorMaybeMove of output", "%s", TF_TensorMaybeMove(made) ? "moved" : "NULL");
  memset(TF_TensorData(made), 0, 24);
  TF_DeleteTensor(made);
}

static void probe_allocate_empty(TF_OpKernelContext* context) {
  const int64_t dims[] = {0, 3};
  allocate_and_drop(context, "empty", 0, TF_FLOAT, dims, 2, 0);
}

static void probe_allocate_scalar(TF_OpKernelContext* context) {
  TF_Tensor* made = allocate(context, "scalar", 0, TF_FLOAT, NULL, 0, 4);
  *(float*)TF_TensorData(made) = 5;
  TF_DeleteTensor(made);
}

static void probe_allocate_after_failure(TF_OpKernelContext* context) {
  TF_Status* status = earlier_failure();
  TF_Tensor* made = TF_AllocateOutput(context, 0, TF_FLOAT, NULL, 0, 4, status);
  record_status("TF_AllocateOutput after a failure", status, "%s", described(made));
  if (made) *(float*)TF_TensorData(made) = 6;
  TF_DeleteTensor(made);
  TF_DeleteStatus(status);
}

static void probe_allocate_too_much(TF_OpKernelContext* context) {
  const int64_t dims[] = {(int64_t)1 << 46};
  allocate_and_drop(context, "2^48 bytes", 0, TF_FLOAT, dims, 1, 0);
  finish(context);
}

static void probe_allocate_negative(TF_OpKernelContext* context) {
  const int64_t dims[] = {-1};
  allocate_and_drop(context, "dimension -1", 0, TF_FLOAT, dims, 1, 4);
  finish(context);
}

static void probe_allocate_overflow(TF_OpKernelContext* context) {
  const int64_t dims[] = {(int64_t)1 << 40, (int64_t)1 << 40};
  allocate_and_drop(context, "2^80 elements", 0, TF_FLOAT, dims, 2, 4);
  finish(context);
}

static TF_Tensor* new_float(float value) {
  TF_Tensor* made = TF_AllocateTensor(TF_FLOAT, kTwo, 1, 8);
  ((float*)TF_TensorData(made))[0] = value;
  ((float*)TF_TensorData(made))[1] = value;
  return made;
}

static void set_output(TF_OpKernelContext* context, const char* when, int index,
                       const TF_Tensor* tensor) {
  TF_Status* status = earlier_failure();
  TF_SetOutput(context, index, tensor, status);
  record_status(text("TF_SetOutput %s", when), status, "%s", "");
  TF_DeleteStatus(status);
}

static void probe_set(TF_OpKernelContext* context) {
  TF_Tensor* made = new_float(3);
  set_output(context, "index -1", -1, made);
  set_output(context, "index 1 of 1", 1, made);
  set_output(context, "index 0", 0, made);
  record("handle after TF_SetOutput", "%s", described(made));
  record("TF_TensorMaybeMove after TF_SetOutput", "%s",
         TF_TensorMaybeMove(made) ? "moved" : "NULL");
  TF_DeleteTensor(made);
}

static void probe_set_twice(TF_OpKernelContext* context) {
  TF_Tensor* made = new_float(3);
  set_output(context, "first", 0, made);
  set_output(context, "second", 0, made);
  TF_DeleteTensor(made);
}

static void probe_set_other_type(TF_OpKernelContext* context) {
  TF_Tensor* made = TF_AllocateTensor(TF_DOUBLE, kTwo, 1, 16);
  set_output(context, "double for float", 0, made);
  TF_DeleteTensor(made);
}

static void probe_set_input(TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor* input = NULL;
  TF_GetInput(context, 0, &input, status);
  set_output(context, "an input", 0, input);
  TF_DeleteTensor(input);
  TF_DeleteStatus(status);
}

static void probe_set_then_allocate(TF_OpKernelContext* context) {
  TF_Tensor* made = new_float(3);
  set_output(context, "before TF_AllocateOutput", 0, made);
  allocate_and_drop(context, "after TF_SetOutput", 0, TF_FLOAT, kTwo, 1, 8);
  TF_DeleteTensor(made);
}

static void probe_allocate_then_set(TF_OpKernelContext* context) {
  TF_Tensor* made = new_float(3);
  allocate_and_drop(context, "before TF_SetOutput", 0, TF_FLOAT, kTwo, 1, 8);
  set_output(context, "after TF_AllocateOutput", 0, made);
  TF_DeleteTensor(made);
}

static void probe_unset(TF_OpKernelContext* context) { (void)context; }

static void mutable_output(TF_OpKernelContext* context, const char* when, int index) {
  TF_Status* status = earlier_failure();
  TF_Tensor* output = TF_GetMutableOutput(context, index, status);
  record_status(text("TF_GetMutableOutput %s", when), status, "%s", described(output));
  TF_DeleteTensor(output);
  TF_DeleteStatus(status);
}

static void probe_mutable(TF_OpKernelContext* context) {
  mutable_output(context, "-1", -1);
  mutable_output(context, "1 of 1", 1);
  finish(context);
  mutable_output(context, "0", 0);
}

static void probe_mutable_unset(TF_OpKernelContext* context) {
  mutable_output(context, "before it is set", 0);
  finish(context);
}

/* -- temporaries -- */

static TF_Tensor* temporary(TF_OpKernelContext* context, const char* when, TF_DataType type,
                            const int64_t* dims, int rank, TF_AllocatorAttributes* attributes) {
  TF_Status* status = earlier_failure();
  TF_Tensor* made = TF_AllocateTemp(context, type, dims, rank, attributes, status);
  record_status(text("TF_AllocateTemp %s", when), status, "%s", described(made));
  TF_DeleteStatus(status);
  return made;
}

static void probe_temporary_sizes(TF_OpKernelContext* context) {
  static const size_t kSizes[] = {0, 1, 8, 9, 16, 32};
  for (size_t i = 0; i < sizeof kSizes / sizeof *kSizes; ++i) {
    TF_AllocatorAttributes attributes = {kSizes[i], 1};
    const char* when = text("struct_size %zu", kSizes[i]);
    TF_DeleteTensor(temporary(context, when, TF_FLOAT, kTwo, 1, &attributes));
  }
}

static void probe_temporaries(TF_OpKernelContext* context) {
  const int64_t empty[] = {0};
  probe_temporary_sizes(context);
  TF_DeleteTensor(temporary(context, "no attributes", TF_DOUBLE, kTwoByThree, 2, NULL));
  TF_DeleteTensor(temporary(context, "empty", TF_FLOAT, empty, 1, NULL));
  TF_DeleteTensor(temporary(context, "string", TF_STRING, kTwo, 1, NULL));
  TF_DeleteTensor(temporary(context, "scalar", TF_BOOL, NULL, 0, NULL));
  TF_Tensor* output = temporary(context, "for the output", TF_FLOAT, NULL, 0, NULL);
  record("TF_TensorMaybeMove of temporary", "%s", TF_TensorMaybeMove(output) ? "moved" : "NULL");
  *(float*)TF_TensorData(output) = 4;
  set_output(context, "a temporary", 0, output);
  TF_DeleteTensor(output);
}

static void probe_temporary_objects(TF_OpKernelContext* context) {
  TF_DeleteTensor(temporary(context, "variant", TF_VARIANT, kTwo, 1, NULL));
  TF_DeleteTensor(temporary(context, "resource", TF_RESOURCE, kTwo, 1, NULL));
  finish(context);
}

static void probe_temporary_too_much(TF_OpKernelContext* context) {
  const int64_t dims[] = {(int64_t)1 << 46};
  TF_DeleteTensor(temporary(context, "2^48 bytes", TF_FLOAT, dims, 1, NULL));
  finish(context);
}

static void probe_temporary_negative(TF_OpKernelContext* context) {
  const int64_t dims[] = {-1};
  TF_DeleteTensor(temporary(context, "dimension -1", TF_FLOAT, dims, 1, NULL));
  finish(context);
}

static void probe_failure_and_other_type(TF_OpKernelContext* context) {
  probe_set_other_type(context);
  TF_Status* status = TF_NewStatus();
  TF_SetStatus(status, TF_DATA_LOSS, "after an output of another type");
  TF_OpKernelContext_Failure(context, status);
  TF_DeleteStatus(status);
}

const ProbeCase kOutputCases[] = {
    {"allocate", probe_allocate},
    {"allocate empty", probe_allocate_empty},
    {"allocate scalar", probe_allocate_scalar},
    {"allocate after a failure", probe_allocate_after_failure},
    {"allocate too much", probe_allocate_too_much},
    {"allocate negative", probe_allocate_negative},
    {"allocate overflow", probe_allocate_overflow},
    {"set", probe_set},
    {"set twice", probe_set_twice},
    {"set other type", probe_set_other_type},
    {"set input", probe_set_input},
    {"set then allocate", probe_set_then_allocate},
    {"allocate then set", probe_allocate_then_set},
    {"unset", probe_unset},
    {"mutable", probe_mutable},
    {"mutable unset", probe_mutable_unset},
    {"temporaries", probe_temporaries},
    {"temporary objects", probe_temporary_objects},
    {"temporary too much", probe_temporary_too_much},
    {"temporary negative", probe_temporary_negative},
    {"failure and other type", probe_failure_and_other_type},
    {NULL, NULL},
};
