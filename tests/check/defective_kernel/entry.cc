// The fixture's kernels, with one defect.
#include "defects.h"

#include <cstring>

namespace defective {
namespace {

Tables tables;

void* create(TF_OpKernelConstruction* construction) {
  Status status;
  auto* kernel = new Kernel{false, 1.0f, -1};
  if (!TF_OpKernelConstruction_HasAttr(construction, "factor", status.get())) {
    const TF_StringView name = TF_OpKernelConstruction_GetName(construction);
    if (std::strncmp(name.data, "Relu", 4) == 0) return kernel;
  }
  kernel->is_scale = true;
  TF_OpKernelConstruction_GetAttrFloat(construction, "factor", &kernel->factor, status.get());
  if (!status.ok()) TF_OpKernelConstruction_Failure(construction, status.get());
  return kernel;
}

float result_of(const Kernel& kernel, float value) {
  if (kernel.is_scale) return kernel.factor * value;
  return value < 0 ? 0 : value;
}

void compute(void* object, TF_OpKernelContext* context) {
  const auto& kernel = *static_cast<const Kernel*>(object);
  Status status;
  TF_Tensor* input = nullptr;
  TF_GetInput(context, 0, &input, status.get());
  if (!status.ok()) return TF_OpKernelContext_Failure(context, status.get());
  int64_t dims[8] = {};
  const int rank = TF_NumDims(input);
  for (int at = 0; at < rank && at < 8; ++at) dims[at] = TF_Dim(input, at);
  const size_t size = TF_TensorByteSize(input);
  TF_Tensor* output = TF_AllocateOutput(context, 0, TF_FLOAT, dims, rank, size, status.get());
  if (status.ok()) {
    const auto* from = static_cast<const float*>(TF_TensorData(input));
    auto* to = static_cast<float*>(TF_TensorData(output));
    for (size_t at = 0; at < size / sizeof(float); ++at) to[at] = result_of(kernel, from[at]);
    TF_DeleteTensor(output);
  } else {
    TF_OpKernelContext_Failure(context, status.get());
  }
  TF_DeleteTensor(input);
}

void destroy(void* object) { delete static_cast<Kernel*>(object); }

void register_all() {
  define_op("DefectScale", "factor: float = 2");
  register_kernel("Relu", "T", TF_FLOAT);
  register_kernel("DefectScale", "T", TF_FLOAT);
}

}  // namespace

const Tables original = {register_all, create, compute, destroy};

void register_kernel(const char* op, const char* attr, int type, const char* host_arg) {
  Status status;
  TF_KernelBuilder* builder =
      TF_NewKernelBuilder(op, "CPU", tables.create, tables.compute, tables.destroy);
  if (attr != nullptr) {
    TF_KernelBuilder_TypeConstraint(builder, attr, static_cast<TF_DataType>(type), status.get());
  }
  if (host_arg != nullptr) TF_KernelBuilder_HostMemory(builder, host_arg);
  TF_RegisterKernelBuilder(op, builder, status.get());
}

void define_op(const char* name, const char* attr_spec) {
  Status status;
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder(name);
  TF_OpDefinitionBuilderAddAttr(builder, "T: type");
  TF_OpDefinitionBuilderAddAttr(builder, attr_spec);
  TF_OpDefinitionBuilderAddInput(builder, "x: T");
  TF_OpDefinitionBuilderAddOutput(builder, "y: T");
  TF_RegisterOpDefinition(builder, status.get());
}

}  // namespace defective

extern "C" TF_CAPI_EXPORT void TF_InitKernel() {
  using namespace defective;
  tables = original;
  apply_chosen_defect(tables);
  tables.register_all();
}
