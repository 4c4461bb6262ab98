// The order of work: the kernels compute on the thread that calls them.
#pragma once

#include "kernel/execution.h"

namespace host_kernels {

// Returns when the inputs can be read, that is when the stream has done what it holds. Without a
// stream they can be read at once. Throws kernel::Failed where the device is not host_device.
void await_inputs(const kernel::Execution& execution);

}  // namespace host_kernels
