// The attributes of a node.
#pragma once

#include "kernel/status.h"
#include "modular_tf/kernels.h"

namespace kernel {

// Valid within the constructor of a kernel. All functions throw Failed where the node has no such
// attribute.
class Attributes {
 public:
  explicit Attributes(TF_OpKernelConstruction* raw) : raw_(raw) {}

  bool flag(const char* name) const {
    unsigned char value = 0;
    Status status;
    TF_OpKernelConstruction_GetAttrBool(raw_, name, &value, status.get());
    status.check();
    return value != 0;
  }

 private:
  TF_OpKernelConstruction* const raw_;
};

}  // namespace kernel
