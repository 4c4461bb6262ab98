#include "command.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "kernel/status.h"

namespace opencl_kernels {
namespace {

using Program = opencl::Handle<cl_program, clRetainProgram, clReleaseProgram>;
using Key = std::tuple<cl_context, cl_device_id, const char*, std::string>;

constexpr size_t kLongestLog = 2000;

// Throws kernel::Failed, with the name of the OpenCL function, unless `error` is CL_SUCCESS.
void check(cl_int error, const char* function) {
  if (error == CL_SUCCESS) return;
  throw kernel::Failed(opencl::status_code(error),
                       std::string(function) + ": " + opencl::error_text(error));
}

std::string log_of(cl_program program, cl_device_id device) {
  size_t size = 0;
  if (clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size)) return "";
  std::string log(size, '\0');
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  return log.substr(0, std::min(log.find('\0'), kLongestLog));
}

Program compiled(const OpenCLDeviceStream& stream, const char* source, const std::string& options) {
  cl_int error = CL_SUCCESS;
  Program program(clCreateProgramWithSource(stream.context, 1, &source, nullptr, &error));
  check(error, "clCreateProgramWithSource");
  error = clBuildProgram(program.get(), 1, &stream.device, options.c_str(), nullptr, nullptr);
  if (error == CL_SUCCESS) return program;
  throw kernel::Failed(TF_INTERNAL, "clBuildProgram " + options + ": " + opencl::error_text(error) +
                                        '\n' + log_of(program.get(), stream.device));
}

// Never destroyed: drivers may be gone before static objects are. A program keeps its context, so
// that no other one gets its address.
struct Programs {
  std::mutex mutex;
  std::map<Key, Program> by_source;
};

Programs& programs() {
  static auto* const all = new Programs;
  return *all;
}

Program program_of(const OpenCLDeviceStream& stream, const char* source,
                   const std::string& options) {
  Programs& all = programs();
  const std::lock_guard lock(all.mutex);
  Program& program = all.by_source[Key(stream.context, stream.device, source, options)];
  if (!program) program = compiled(stream, source, options);
  return program;
}

}  // namespace

Function function_of(const OpenCLDeviceStream& stream, const char* source,
                     const std::string& options) {
  const Program program = program_of(stream, source, options);
  cl_int error = CL_SUCCESS;
  Function function(clCreateKernel(program.get(), "run", &error));
  check(error, "clCreateKernel");
  return function;
}

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
