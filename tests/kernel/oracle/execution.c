/* What the functions of an execution answer. */
#include <stdint.h>
#include <string.h>

#include "probe.h"

static const int64_t kTwo[] = {2};
static const int64_t kTwoByThree[] = {2, 3};
static TF_Tensor* const kUntouched = (TF_Tensor*)(uintptr_t)0x77;

/* -- inputs -- */

static void get_input(TF_OpKernelContext* context, int index, TF_Status* status, const char* when) {
  TF_Tensor* tensor = kUntouched;
  TF_GetInput(context, index, &tensor, status);
  const bool untouched = tensor == kUntouched;
  record_status(text("TF_GetInput %d%s", index, when), status, "%s",
                untouched ? "untouched" : described(tensor));
  if (!untouched) TF_DeleteTensor(tensor);
  TF_DeleteStatus(status);
}

static void probe_inputs(TF_OpKernelContext* context) {
  const int inputs = TF_NumInputs(context);
  record("TF_NumInputs", "%d", inputs);
  record("TF_NumOutputs", "%d", TF_NumOutputs(context));
  for (int index = -1; index <= inputs; ++index) {
    get_input(context, index, TF_NewStatus(), "");
    get_input(context, index, earlier_failure(), " after a failure");
  }
  for (int index = 0; index < inputs; ++index) {
    record(text("TF_InputDatatype %d", index), "%d", TF_InputDatatype(context, index));
  }
  for (int index = 0; index < TF_NumOutputs(context); ++index) {
    record(text("TF_ExpectedOutputDataType %d", index), "%d",
           TF_ExpectedOutputDataType(context, index));
  }
  finish(context);
}

static void probe_handles(TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor* first = NULL;
  TF_Tensor* second = NULL;
  TF_GetInput(context, 0, &first, status);
  TF_GetInput(context, 0, &second, status);
  record("TF_GetInput twice", "handles=%s data=%s", first == second ? "same" : "different",
         TF_TensorData(first) == TF_TensorData(second) ? "same" : "different");
  TF_DeleteTensor(first);
  record("input after a deleted handle", "%s", described(second));
  record("TF_TensorMaybeMove of input", "%s", TF_TensorMaybeMove(second) ? "moved" : "NULL");
  TF_DeleteTensor(second);
  TF_DeleteStatus(status);
  finish(context);
}

static TF_Tensor* kept;

static void probe_keep(TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_GetInput(context, 0, &kept, status);
  TF_DeleteStatus(status);
  finish(context);
}

static void probe_kept(TF_OpKernelContext* context) {
  record("kept input", "%s first=%g", described(kept), *(const float*)TF_TensorData(kept));
  TF_DeleteTensor(kept);
  finish(context);
}

static void input_range(TF_OpKernelContext* context, const char* name) {
  TF_InputRange_Args args = {sizeof args, NULL, -7, -7, earlier_failure()};
  TF_InputRange(context, name, &args);
  record_status(text("TF_InputRange %s", name), args.status, "start=%d stop=%d", args.start,
                args.stop);
  TF_DeleteStatus(args.status);
}

static void probe_ranges(TF_OpKernelContext* context) {
  input_range(context, "one");
  input_range(context, "several");
  input_range(context, "any");
  input_range(context, "last");
  input_range(context, "missing");
  input_range(context, "first_output");
  probe_inputs(context);
}

/* -- outputs -- */

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
  record("TF_TensorMaybeMove after TF_SetOutput", "%s", TF_TensorMaybeMove(made) ? "moved" : "NULL");
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

/* -- facts about the execution -- */

static void host_memory(TF_OpKernelContext* context, int index) {
  TF_Status* status = TF_NewStatus();
  bool on_host = TF_IsHostMemoryInput(context, index, status);
  record_status(text("TF_IsHostMemoryInput %d", index), status, "%d", on_host);
  on_host = TF_IsHostMemoryOutput(context, index, status);
  record_status(text("TF_IsHostMemoryOutput %d", index), status, "%d", on_host);
  TF_DeleteStatus(status);
}

static void probe_host_memory(TF_OpKernelContext* context) {
  const int inputs = TF_NumInputs(context);
  for (int index = -1; index <= inputs; ++index) host_memory(context, index);
  finish(context);
}

static void record_view(const char* key, TF_StringView view) {
  record(key, "%.*s", (int)view.len, view.data ? view.data : "");
}

static void probe_names(TF_OpKernelContext* context) {
  record_view("TF_GetDeviceName", TF_GetDeviceName(context));
  record_view("TF_GetOpKernelName", TF_GetOpKernelName(context));
  record_view("TF_GetResourceMgrDefaultContainerName",
              TF_GetResourceMgrDefaultContainerName(context));
  record_view("TF_GetOpKernelRequestedInput 0", TF_GetOpKernelRequestedInput(context, 0));
  record("TF_GetGraphDefVersion", "%d", TF_GetGraphDefVersion(context));
  finish(context);
}

static void probe_ids(TF_OpKernelContext* context) {
  static int64_t last;
  const int64_t step = TF_StepId(context);
  record("TF_StepId", "%s", step == last ? "as before" : "another");
  record("TF_GetStepId", "%s", TF_GetStepId(context) == step ? "as TF_StepId" : "another");
  record("TF_GetFrameId", "%llu", (unsigned long long)TF_GetFrameId(context));
  record("TF_GetIterId", "%lld", (long long)TF_GetIterId(context));
  record("TF_GetDeviceId", "%d", TF_GetDeviceId(context));
  last = step;
  finish(context);
}

static void probe_stream(TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  SP_Stream stream = TF_GetStream(context, status);
  record_status("TF_GetStream", status, "%s", stream ? "a stream" : "NULL");
  TF_DeleteStatus(status);
  finish(context);
}

static void probe_expected_outside(TF_OpKernelContext* context) {
  record("TF_ExpectedOutputDataType 1 of 1", "%d", TF_ExpectedOutputDataType(context, 1));
  finish(context);
}

static void probe_expected_negative(TF_OpKernelContext* context) {
  record("TF_ExpectedOutputDataType -1", "%d", TF_ExpectedOutputDataType(context, -1));
  finish(context);
}

static void probe_datatype_outside(TF_OpKernelContext* context) {
  record("TF_InputDatatype 1 of 1", "%d", TF_InputDatatype(context, 1));
  finish(context);
}

static void probe_requested_outside(TF_OpKernelContext* context) {
  record_view("TF_GetOpKernelRequestedInput 1 of 1", TF_GetOpKernelRequestedInput(context, 1));
  finish(context);
}

/* -- failures -- */

static void fail(TF_OpKernelContext* context, TF_Code code, const char* message) {
  TF_Status* status = TF_NewStatus();
  TF_SetStatus(status, code, message);
  TF_OpKernelContext_Failure(context, status);
  TF_DeleteStatus(status);
}

static void probe_first_failure(TF_OpKernelContext* context) {
  fail(context, TF_DATA_LOSS, "the first failure");
  fail(context, TF_INTERNAL, "the second failure");
}

static void probe_failure_then_ok(TF_OpKernelContext* context) {
  fail(context, TF_DATA_LOSS, "the only failure");
  fail(context, TF_OK, "");
}

static void probe_failure_of_ok(TF_OpKernelContext* context) {
  fail(context, TF_OK, "");
  finish(context);
}

static void probe_failure_with_outputs(TF_OpKernelContext* context) {
  finish(context);
  fail(context, TF_DATA_LOSS, "after the output");
}

static void probe_failure_and_other_type(TF_OpKernelContext* context) {
  probe_set_other_type(context);
  fail(context, TF_DATA_LOSS, "after an output of another type");
}

static const ProbeCase kCases[] = {
    {"inputs", probe_inputs},
    {"handles", probe_handles},
    {"keep", probe_keep},
    {"kept", probe_kept},
    {"ranges", probe_ranges},
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
    {"host memory", probe_host_memory},
    {"names", probe_names},
    {"ids", probe_ids},
    {"stream", probe_stream},
    {"expected outside", probe_expected_outside},
    {"expected negative", probe_expected_negative},
    {"datatype outside", probe_datatype_outside},
    {"requested outside", probe_requested_outside},
    {"first failure", probe_first_failure},
    {"failure then ok", probe_failure_then_ok},
    {"failure of ok", probe_failure_of_ok},
    {"failure with outputs", probe_failure_with_outputs},
    {"failure and other type", probe_failure_and_other_type},
    {"throw", throw_from_compute},
};
enum { kCount = sizeof kCases / sizeof *kCases };

static void* create(TF_OpKernelConstruction* node) {
  return (void*)(intptr_t)case_of(node, kCases, kCount);
}

static void compute(void* kernel, TF_OpKernelContext* context) {
  const int index = (int)(intptr_t)kernel;
  if (index >= 0) kCases[index].run(context);
}

static void register_with_host_args(void) {
  const char* const attrs[] = {"case: string", "N: int", NULL};
  const char* const inputs[] = {"numbers: N * int32", "x: float", NULL};
  const char* const outputs[] = {"y: float", "z: float", NULL};
  TF_Status* status = TF_NewStatus();
  define_op("MtfProbeHostArgs", attrs, inputs, outputs);
  TF_KernelBuilder* builder =
      TF_NewKernelBuilder("MtfProbeHostArgs", "CPU", create, compute, NULL);
  TF_KernelBuilder_HostMemory(builder, "numbers");
  TF_KernelBuilder_HostMemory(builder, "z");
  TF_RegisterKernelBuilder("MtfProbeHostArgsKernel", builder, status);
  TF_DeleteStatus(status);
}

void register_execution_probe(void) {
  const char* const attrs[] = {"case: string", NULL};
  const char* const input[] = {"x: float", NULL};
  const char* const output[] = {"y: float", NULL};
  const char* const list_attrs[] = {"case: string", "N: int", "M: int", "L: list(type)", NULL};
  const char* const list_inputs[] = {"one: float", "several: N * float", "any: L", "last: int32",
                                     NULL};
  const char* const list_outputs[] = {"first_output: float", "more: M * double", "others: L", NULL};
  const char* const text_input[] = {"x: string", NULL};
  define_op("MtfProbeStrings", attrs, text_input, output);
  register_kernel("MtfProbeStrings", create, compute, NULL);
  define_op("MtfProbeRun", attrs, input, output);
  register_kernel("MtfProbeRun", create, compute, NULL);
  define_op("MtfProbeLists", list_attrs, list_inputs, list_outputs);
  register_kernel("MtfProbeLists", create, compute, NULL);
  register_with_host_args();
}
