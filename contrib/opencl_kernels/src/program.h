// Functions in OpenCL C, compiled when they are first used.
#pragma once

#include <string>

#include "opencl.h"
#include "opencl_device/stream.h"

namespace opencl_kernels {

using Function = opencl::Handle<cl_kernel, clRetainKernel, clReleaseKernel>;

// Throws kernel::Failed, with the name of the OpenCL function, unless `error` is CL_SUCCESS.
void check(cl_int error, const char* function);

// The function `run` of a source, for the device of a stream. `source` lives as long as
// the process. Programs are compiled once and kept; a function is the caller's alone, since its
// arguments are state. Throws kernel::Failed, with the compiler's messages. [any thread]
Function function_of(const OpenCLDeviceStream& stream, const char* source,
                     const std::string& options);

}  // namespace opencl_kernels
