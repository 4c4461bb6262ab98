#include "program.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "cl_error.h"
#include "kernel/status.h"

namespace opencl_kernels {
namespace {

using Program = opencl::Handle<cl_program, clRetainProgram, clReleaseProgram>;
using Key = std::tuple<cl_context, cl_device_id, const char*, std::string>;

constexpr size_t kLongestLog = 2000;

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

void check(cl_int error, const char* function) {
  if (error == CL_SUCCESS) return;
  throw kernel::Failed(opencl::status_code(error),
                       std::string(function) + ": " + opencl::error_text(error));
}

Function function_of(const OpenCLDeviceStream& stream, const char* source,
                     const std::string& options) {
  const Program program = program_of(stream, source, options);
  cl_int error = CL_SUCCESS;
  Function function(clCreateKernel(program.get(), "run", &error));
  check(error, "clCreateKernel");
  return function;
}

}  // namespace opencl_kernels
