// A kernel that throws.
#include <stdexcept>

#include "probe.h"

void throw_from_compute(TF_OpKernelContext* context) {
  finish(context);
  throw std::runtime_error("thrown by the kernel");
}
