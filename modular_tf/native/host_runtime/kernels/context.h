// Contexts, as the functions on them need them.
#pragma once

#include "call.h"

namespace mtf::kernels {

// The call of a context; NULL after reporting that it is over.
mtf_kernel_call* call_of(const TF_OpKernelContext* handle, const char* function);
// The same; the status says so too.
mtf_kernel_call* call_of(const TF_OpKernelContext* handle, const char* function, TF_Status* status);

// Memory for a tensor on the host or the device of a call; false and a status where there is none.
bool allocate_for_call(const mtf_kernel_call* call, Tensor* tensor, bool on_host,
                       TF_Status* status);

}  // namespace mtf::kernels
