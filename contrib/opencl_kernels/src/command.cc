#include "command.h"

namespace opencl_kernels {

const OpenCLDeviceStream& stream_of(const kernel::Execution& execution) {
  const auto* shared = reinterpret_cast<const OpenCLDeviceStream*>(execution.stream());
  if (shared != nullptr && shared->tag == OPENCL_DEVICE_STREAM_TAG) return *shared;
  throw kernel::Failed(TF_FAILED_PRECONDITION,
                       "these kernels know the streams of opencl_device only, and the devices of "
                       "type " MTF_OPENCL_KERNELS_DEVICE_TYPE
                       " are another plugin's; build them for the type of opencl_device, with "
                       "-DMTF_OPENCL_KERNELS_DEVICE_TYPE=...");
}

Command& Command::memory(const kernel::Tensor& tensor) {
  const bool is_empty = kernel::n_elements(tensor.shape()) == 0;  // its address may be anybody's
  check(clSetKernelArgSVMPointer(function_.get(), next_++, is_empty ? nullptr : tensor.data<void>()),
        "clSetKernelArgSVMPointer");
  return *this;
}

Command& Command::number(cl_long value) {
  check(clSetKernelArg(function_.get(), next_++, sizeof(value), &value), "clSetKernelArg");
  return *this;
}

void Command::launch(const Range& range) {
  const size_t groups[] = {range.group, range.group};
  cl_event event = nullptr;
  check(clEnqueueNDRangeKernel(stream_.queue, function_.get(), 2, nullptr, range.items.data(),
                               range.group == 0 ? nullptr : groups, 0, nullptr, &event),
        "clEnqueueNDRangeKernel");
  const opencl::Handle<cl_event, clRetainEvent, clReleaseEvent> launched(event);
  kernel::Status status;
  stream_.add(const_cast<SP_Stream>(reinterpret_cast<const SP_Stream_st*>(&stream_)), event,
              status.get());
  status.check();
}

}  // namespace opencl_kernels
