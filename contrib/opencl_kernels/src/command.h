// Functions in OpenCL C, compiled when they are first used, and their launch on the stream of an execution.
#pragma once

#include <array>
#include <string>

#include "kernel/execution.h"
#include "opencl.h"
#include "opencl_device/stream.h"

namespace opencl_kernels {

using Function = opencl::Handle<cl_kernel, clRetainKernel, clReleaseKernel>;

// The function `run` of a source, for the device of a stream. `source` lives as long as
// the process. Programs are compiled once and kept; a function is the caller's alone, since its
// arguments are state. Throws kernel::Failed, with the compiler's messages. [any thread]
Function function_of(const OpenCLDeviceStream& stream, const char* source,
                     const std::string& options);

// The stream that the work goes to. Throws kernel::Failed where the device is not opencl_device.
const OpenCLDeviceStream& stream_of(const kernel::Execution& execution);

// Work items in two dimensions, and how many of them a group has in each; 0 lets the driver choose.
struct Range {
  std::array<size_t, 2> items{1, 1};
  size_t group = 0;
};

// Arguments are set in the order of the function's, then it is launched. All throw kernel::Failed.
class Command {
 public:
  Command(const OpenCLDeviceStream& stream, const char* source, const std::string& options)
      : stream_(stream), function_(function_of(stream, source, options)) {}

  Command& memory(const kernel::Tensor& tensor);
  Command& number(cl_long value);

  // Returns before the work is done; the driver keeps what it needs of this.
  void launch(const Range& range);

 private:
  const OpenCLDeviceStream& stream_;
  const Function function_;
  cl_uint next_ = 0;
};

}  // namespace opencl_kernels
