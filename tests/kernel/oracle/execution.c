/* What the functions of an execution answer, but for those of its outputs. */
#include <stdint.h>

#include "probe.h"

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

static const ProbeCase kCases[] = {
    {"inputs", probe_inputs},
    {"handles", probe_handles},
    {"keep", probe_keep},
    {"kept", probe_kept},
    {"ranges", probe_ranges},
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
    {"throw", throw_from_compute},
    {NULL, NULL},
};

static void* create(TF_OpKernelConstruction* node) {
  void* found = find_case(node, kCases);
  return found ? found : find_case(node, kOutputCases);
}

static void register_with_host_args(void) {
  const char* const attrs[] = {"case: string", "N: int", NULL};
  const char* const inputs[] = {"numbers: N * int32", "x: float", NULL};
  const char* const outputs[] = {"y: float", "z: float", NULL};
  TF_Status* status = TF_NewStatus();
  define_op("MtfProbeHostArgs", attrs, inputs, outputs);
  TF_KernelBuilder* builder =
      TF_NewKernelBuilder("MtfProbeHostArgs", "CPU", create, compute_case, NULL);
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
  register_kernel("MtfProbeStrings", create, compute_case, NULL);
  define_op("MtfProbeRun", attrs, input, output);
  register_kernel("MtfProbeRun", create, compute_case, NULL);
  define_op("MtfProbeLists", list_attrs, list_inputs, list_outputs);
  register_kernel("MtfProbeLists", create, compute_case, NULL);
  register_with_host_args();
}
