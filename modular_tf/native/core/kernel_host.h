// The table of the host runtime, which has the functions that kernels call.
#pragma once

#include "kernels/host_table.h"
#include "owned_error.h"

namespace mtf {

// The attached table; there is one before all other use.
const mtf_kernel_host& kernel_host();

// The error that the host runtime tells of, whose message is freed here; none where it tells of none.
Error error_of(mtf_kernel_failure* failure);

}  // namespace mtf
