/* Ops, kernels and cases as all files of the probe define them. */
#include <string.h>

#include "probe.h"

/* Graphs of TensorFlow need a shape function. */
static void unknown_shape(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeInferenceContextSetUnknownShape(context, status);
}

void define_op(const char* name, const char* const* attrs, const char* const* inputs,
               const char* const* outputs) {
  TF_Status* status = TF_NewStatus();
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder(name);
  for (; *attrs; ++attrs) TF_OpDefinitionBuilderAddAttr(builder, *attrs);
  for (; *inputs; ++inputs) TF_OpDefinitionBuilderAddInput(builder, *inputs);
  for (; *outputs; ++outputs) TF_OpDefinitionBuilderAddOutput(builder, *outputs);
  TF_OpDefinitionBuilderSetIsStateful(builder, true);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, unknown_shape);
  TF_RegisterOpDefinition(builder, status);
  record_status(text("TF_RegisterOpDefinition %s", name), status, "%s", "");
  TF_DeleteStatus(status);
}

void register_kernel(const char* op, CreateKernel create, ComputeKernel compute,
                     DeleteKernel delete_kernel) {
  TF_Status* status = TF_NewStatus();
  TF_KernelBuilder* builder = TF_NewKernelBuilder(op, "CPU", create, compute, delete_kernel);
  TF_RegisterKernelBuilder(text("%sKernel", op), builder, status);
  TF_DeleteStatus(status);
}

void* find_case(TF_OpKernelConstruction* construction, const ProbeCase* cases) {
  char name[64] = "";
  TF_Status* status = TF_NewStatus();
  TF_OpKernelConstruction_GetAttrString(construction, "case", name, sizeof name - 1, status);
  TF_DeleteStatus(status);
  for (; cases->name; ++cases) {
    if (strcmp(cases->name, name) == 0) return (void*)cases;
  }
  return NULL;
}

void compute_case(void* found, TF_OpKernelContext* context) {
  if (found) {
    ((const ProbeCase*)found)->run(context);
  } else {
    record("case", "there is none of this name");
  }
}

static void set_to_zero(TF_OpKernelContext* context, int index) {
  const int64_t dims[] = {1};
  TF_Status* status = TF_NewStatus();
  TF_DataType type = TF_ExpectedOutputDataType(context, index);
  TF_Tensor* output =
      TF_AllocateOutput(context, index, type, dims, 1, TF_DataTypeSize(type), status);
  if (output) memset(TF_TensorData(output), 0, TF_TensorByteSize(output));
  TF_DeleteTensor(output);
  TF_DeleteStatus(status);
}

void finish(TF_OpKernelContext* context) {
  for (int index = 0; index < TF_NumOutputs(context); ++index) set_to_zero(context, index);
}

TF_CAPI_EXPORT void TF_InitKernel(void) {
  register_registration_probe();
  register_selection_probe();
  register_attribute_probe();
  register_execution_probe();
  register_forwarding_probe();
  register_tensor_probe();
  register_async_probe();
  register_lifetime_probe();
}
