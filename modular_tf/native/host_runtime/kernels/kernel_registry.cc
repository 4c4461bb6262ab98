#include "node.h"

#include <memory>
#include <new>

#include "host_table.h"
#include "tensor.h"
#include "call.h"
#include "entry.h"
#include "fork_lock.h"
#include "handles.h"
#include "modular_tf/ops.h"
#include "op_definition.h"

namespace mtf::kernels {
namespace {

struct Registered {
  Lock lock;
  std::vector<const mtf_kernel_definition*> all;
};

Registered& registered() {
  static auto* const made = new Registered;  // never destroyed: plugins point into it
  return *made;
}

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

constexpr int32_t kLastConstraint = TF_UINT64;  // of a type constraint, as TensorFlow has it

mtf_kernel_definition* builder_of(const TF_KernelBuilder* handle, const char* function) {
  return checked<mtf_kernel_definition>(handle, HandleKind::kKernelBuilder, function);
}

template <class Compute>
TF_KernelBuilder* new_builder(const char* op, const char* device_type,
                              void* (*create)(TF_OpKernelConstruction*), Compute set_compute,
                              void (*delete_kernel)(void*)) {
  return entry<TF_KernelBuilder*>(nullptr, [&]() -> TF_KernelBuilder* {
    auto definition = std::make_unique<mtf_kernel_definition>();
    definition->op = text_of(op);
    definition->device_type = text_of(device_type);
    definition->create = create;
    set_compute(definition.get());
    definition->delete_kernel = delete_kernel;
    void* handle = new_handle(HandleKind::kKernelBuilder, definition.get());
    if (handle != nullptr) definition.release();
    return static_cast<TF_KernelBuilder*>(handle);
  });
}

}  // namespace

void register_kernel(mtf_kernel_definition* definition) {
  Registered& its = registered();
  const LockGuard guard(its.lock);
  its.all.push_back(definition);
}

int64_t count_kernels() {
  Registered& its = registered();
  const LockGuard guard(its.lock);
  return static_cast<int64_t>(its.all.size());
}

const mtf_kernel_definition* kernel_at(int64_t index, mtf_kernel_facts* facts) {
  Registered& its = registered();
  const LockGuard guard(its.lock);
  if (index < 0 || static_cast<size_t>(index) >= its.all.size()) return nullptr;
  const mtf_kernel_definition* one = its.all[static_cast<size_t>(index)];
  const uintptr_t compute = one->compute_async != nullptr
                                ? reinterpret_cast<uintptr_t>(one->compute_async)
                                : reinterpret_cast<uintptr_t>(one->compute);
  *facts = {one->op.c_str(),
            one->device_type.c_str(),
            one->label.c_str(),
            one->name.c_str(),
            one->priority,
            one->compute_async != nullptr,
            static_cast<int32_t>(one->constraints.size()),
            static_cast<int32_t>(one->host_args.size()),
            reinterpret_cast<uintptr_t>(one->create),
            compute,
            reinterpret_cast<uintptr_t>(one->delete_kernel)};
  return one;
}

void init_kernels(void (*init)(void), mtf_kernel_failure* misuse) {
  const MisuseRecord record(/*logs=*/true);
  init();
  set_failure_of_misuse(misuse, record);
}

const char* constraint_at(const mtf_kernel_definition* kernel, int32_t index, int32_t* type) {
  const auto& [attr, wanted] = kernel->constraints.at(static_cast<size_t>(index));
  *type = wanted;
  return attr.c_str();
}

const char* host_arg_at(const mtf_kernel_definition* kernel, int32_t index) {
  return kernel->host_args.at(static_cast<size_t>(index)).c_str();
}

}  // namespace mtf::kernels

using namespace mtf::kernels;  // the functions of the C interface

extern "C" {

TF_KernelBuilder* TF_NewKernelBuilder(const char* op, const char* device_type,
                                      void* (*create)(TF_OpKernelConstruction*),
                                      void (*compute)(void*, TF_OpKernelContext*),
                                      void (*delete_kernel)(void*)) {
  return new_builder(op, device_type, create,
                     [&](mtf_kernel_definition* made) { made->compute = compute; }, delete_kernel);
}

TF_KernelBuilder* TF_NewAsyncKernelBuilder(
    const char* op, const char* device_type, void* (*create)(TF_OpKernelConstruction*),
    void (*compute)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback*),
    void (*delete_kernel)(void*)) {
  return new_builder(op, device_type, create,
                     [&](mtf_kernel_definition* made) { made->compute_async = compute; },
                     delete_kernel);
}

void TF_KernelBuilder_TypeConstraint(TF_KernelBuilder* handle, const char* attr, TF_DataType type,
                                     TF_Status* status) {
  mtf_kernel_definition* definition = builder_of(handle, __func__);
  const auto number = static_cast<int32_t>(type);
  if (definition == nullptr) {
    return fail(status, TF_INVALID_ARGUMENT, "%s: the builder is not in use", __func__);
  }
  if (number < 1 || number > kLastConstraint) {
    fail(status, TF_UNIMPLEMENTED,
         "kernel of %s: Unexpected type %d for attribute '%s': expected 1 to %d",
         definition->op.c_str(), number, text_of(attr).c_str(), kLastConstraint);
    return keep_misuse_text(kRuleConstraintType, TF_Message(status));
  }
  with_status(status, [&] {
    definition->constraints.emplace_back(text_of(attr), number);
    succeed(status);
  });
}

void TF_KernelBuilder_HostMemory(TF_KernelBuilder* handle, const char* arg_name) {
  mtf_kernel_definition* definition = builder_of(handle, __func__);
  if (definition == nullptr) return;
  entry<int>(0, [&] { definition->host_args.push_back(text_of(arg_name)); return 0; });
}

void TF_KernelBuilder_Priority(TF_KernelBuilder* handle, int32_t priority) {
  mtf_kernel_definition* definition = builder_of(handle, __func__);
  if (definition != nullptr) definition->priority = priority;
}

void TF_KernelBuilder_Label(TF_KernelBuilder* handle, const char* label) {
  mtf_kernel_definition* definition = builder_of(handle, __func__);
  if (definition == nullptr) return;
  entry<int>(0, [&] { definition->label = text_of(label); return 0; });
}

void TF_RegisterKernelBuilder(const char* kernel_name, TF_KernelBuilder* handle,
                              TF_Status* status) {
  void* object = end_handle(handle, HandleKind::kKernelBuilder);
  if (object == nullptr) {
    report_misuse(__func__, handle, HandleKind::kKernelBuilder);
    return fail(status, TF_INVALID_ARGUMENT, "%s: the builder is not in use", __func__);
  }
  std::unique_ptr<mtf_kernel_definition> definition(static_cast<mtf_kernel_definition*>(object));
  with_status(status, [&] {
    definition->name = text_of(kernel_name);
    register_kernel(definition.get());
    definition.release();
    succeed(status);
  });
}

void TF_DeleteKernelBuilder(TF_KernelBuilder* handle) {
  if (handle == nullptr) return;
  void* object = end_handle(handle, HandleKind::kKernelBuilder);
  if (object == nullptr) return report_misuse(__func__, handle, HandleKind::kKernelBuilder);
  delete static_cast<mtf_kernel_definition*>(object);
}

}  // extern "C"

namespace mtf::kernels {
namespace {

int64_t count_handles_of(int32_t kind) { return count_handles(static_cast<HandleKind>(kind)); }

size_t count_outputs(const mtf_kernel_node* node) { return node->outputs.size(); }

}  // namespace
}  // namespace mtf::kernels

using namespace mtf::kernels;

const mtf_kernel_host mtf_kernel_host_table = {
    sizeof(mtf_kernel_host),
    attach_plugin_calls,
    count_kernels,
    kernel_at,
    constraint_at,
    host_arg_at,
    mtf_op_definition_count,
    mtf_op_definition_record,
    mtf_make_absent_function,
    count_handles_of,
    new_node,
    free_node,
    set_attr,
    add_tensor_attr,
    add_input,
    add_output,
    count_outputs,
    create,
    delete_object,
    new_call,
    compute,
    wait,
    take_failure,
    finish,
    abandon,
    free_call,
    drop_buffer,
    new_variable,
    free_variable,
    set_variable,
    read_variable,
    drop_temporaries,
    take_released_keepers,
    init_kernels,
};

// The functions that a shape function calls. The host runs kernels one by one, on tensors whose shapes it
// knows, and never runs a shape function: each of these reports its call by name (KN-100).

namespace mtf::kernels {
namespace {

constexpr char kNotOffered[] = "%s: the host runs no shape functions";

// Returns what "unknown" is where a size or a rank is asked for.
int64_t refuse(const char* function) noexcept {
  report_misuse_by(kRuleNoStub, kNotOffered, function);
  return -1;
}

void refuse(const char* function, TF_Status* status) noexcept {
  fail_by(kRuleNoStub, status, TF_UNIMPLEMENTED, kNotOffered, function);
}

std::nullptr_t refuse_handle(const char* function) noexcept {
  refuse(function);
  return nullptr;
}

}  // namespace
}  // namespace mtf::kernels

using namespace mtf::kernels;
using Context = TF_ShapeInferenceContext;
using Shape = TF_ShapeHandle;
using Dimension = TF_DimensionHandle;

int64_t TF_ShapeInferenceContextNumInputs(Context*) { return refuse(__func__); }
Shape* TF_NewShapeHandle(void) { return refuse_handle(__func__); }
void TF_DeleteShapeHandle(Shape* handle) {
  if (handle != nullptr) refuse(__func__);
}
void TF_ShapeInferenceContextGetInput(Context*, int, Shape*, TF_Status* status) {
  refuse(__func__, status);
}
void TF_ShapeInferenceContextSetOutput(Context*, int, Shape*, TF_Status* status) {
  refuse(__func__, status);
}
Shape* TF_ShapeInferenceContextScalar(Context*) { return refuse_handle(__func__); }
Shape* TF_ShapeInferenceContextVectorFromSize(Context*, size_t) { return refuse_handle(__func__); }
Dimension* TF_NewDimensionHandle(void) { return refuse_handle(__func__); }
void TF_DeleteDimensionHandle(Dimension* handle) {
  if (handle != nullptr) refuse(__func__);
}
void TF_ShapeInferenceContext_GetAttrType(Context*, const char*, TF_DataType*, TF_Status* status) {
  refuse(__func__, status);
}
int64_t TF_ShapeInferenceContextRank(Context*, Shape*) { return refuse(__func__); }
int TF_ShapeInferenceContextRankKnown(Context*, Shape*) { return refuse(__func__) >= 0; }
void TF_ShapeInferenceContextWithRank(Context*, Shape*, int64_t, Shape*, TF_Status* status) {
  refuse(__func__, status);
}
void TF_ShapeInferenceContextWithRankAtLeast(Context*, Shape*, int64_t, Shape*, TF_Status* status) {
  refuse(__func__, status);
}
void TF_ShapeInferenceContextWithRankAtMost(Context*, Shape*, int64_t, Shape*, TF_Status* status) {
  refuse(__func__, status);
}
void TF_ShapeInferenceContextDim(Context*, Shape*, int64_t, Dimension*) { refuse(__func__); }
void TF_ShapeInferenceContextSubshape(Context*, Shape*, int64_t, int64_t, Shape*, TF_Status* status) {
  refuse(__func__, status);
}
void TF_ShapeInferenceContextSetUnknownShape(Context*, TF_Status* status) { refuse(__func__, status); }
int TF_DimensionHandleValueKnown(Dimension*) { return refuse(__func__) >= 0; }
int64_t TF_DimensionHandleValue(Dimension*) { return refuse(__func__); }
void TF_ShapeInferenceContextConcatenateShapes(Context*, Shape*, Shape*, Shape*, TF_Status* status) {
  refuse(__func__, status);
}
