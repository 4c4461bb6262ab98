// Registering classes as kernels.
#pragma once

#include <initializer_list>
#include <string>

#include "kernel/attributes.h"
#include "kernel/execution.h"
#include "kernel/status.h"
#include "modular_tf/kernels.h"

namespace kernel {

struct Constraint {
  const char* attribute;
  TF_DataType type;
};

struct Place {
  const char* op;
  const char* device_type;
};

// The three functions of a kernel, of a class with a constructor that takes `const Attributes&` and a
// `void compute(const Execution&) const`; several threads compute with one object. Both may throw.
template <class Kernel>
struct Functions {
  static void* create(TF_OpKernelConstruction* construction) {
    Kernel* made = nullptr;
    guarded([&] { made = new Kernel(Attributes(construction)); },
            [&](TF_Code code, const char* message) {
              tell(code, message, [&](TF_Status* status) {
                TF_OpKernelConstruction_Failure(construction, status);
              });
            });
    return made;
  }

  static void compute(void* kernel, TF_OpKernelContext* context) {
    guarded([&] { static_cast<const Kernel*>(kernel)->compute(Execution(context)); },
            [&](TF_Code code, const char* message) {
              tell(code, message,
                   [&](TF_Status* status) { TF_OpKernelContext_Failure(context, status); });
            });
  }

  static void destroy(void* kernel) { delete static_cast<Kernel*>(kernel); }

 private:
  template <class Failure>
  static void tell(TF_Code code, const char* message, Failure&& failure) {
    TF_Status* status = TF_NewStatus();
    TF_SetStatus(status, code, message);
    failure(status);
    TF_DeleteStatus(status);
  }
};

// `host_args` are inputs and outputs that the kernel wants in host memory. Throws Failed.
template <class Kernel>
void register_kernel(const Place& place, std::initializer_list<Constraint> constraints,
                     std::initializer_list<const char*> host_args = {}) {
  using Calls = Functions<Kernel>;
  Status status;
  TF_KernelBuilder* builder = TF_NewKernelBuilder(place.op, place.device_type, Calls::create,
                                                  Calls::compute, Calls::destroy);
  for (const Constraint& constraint : constraints) {
    TF_KernelBuilder_TypeConstraint(builder, constraint.attribute, constraint.type, status.get());
    if (TF_GetCode(status.get()) != TF_OK) TF_DeleteKernelBuilder(builder);
    status.check();
  }
  for (const char* name : host_args) TF_KernelBuilder_HostMemory(builder, name);
  TF_RegisterKernelBuilder(place.op, builder, status.get());
  status.check();
}

}  // namespace kernel
