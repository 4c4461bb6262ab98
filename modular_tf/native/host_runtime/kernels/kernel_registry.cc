#include "kernel_registry.h"

#include <memory>
#include <new>

#include "data_types.h"
#include "entry.h"
#include "fork_lock.h"
#include "handles.h"

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
