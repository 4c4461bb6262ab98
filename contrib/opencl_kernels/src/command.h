// One launch of a function on the stream of an execution.
#pragma once

#include <array>
#include <string>

#include "kernel/execution.h"
#include "program.h"

namespace opencl_kernels {

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
