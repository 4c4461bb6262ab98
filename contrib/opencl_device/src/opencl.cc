#include "opencl.h"

namespace opencl {
namespace {

struct Name {
  cl_int error;
  const char* text;
};

#define MTF_NAMED(error) Name{error, #error}
constexpr Name kNames[] = {
    MTF_NAMED(CL_DEVICE_NOT_FOUND),
    MTF_NAMED(CL_DEVICE_NOT_AVAILABLE),
    MTF_NAMED(CL_COMPILER_NOT_AVAILABLE),
    MTF_NAMED(CL_MEM_OBJECT_ALLOCATION_FAILURE),
    MTF_NAMED(CL_OUT_OF_RESOURCES),
    MTF_NAMED(CL_OUT_OF_HOST_MEMORY),
    MTF_NAMED(CL_PROFILING_INFO_NOT_AVAILABLE),
    MTF_NAMED(CL_MEM_COPY_OVERLAP),
    MTF_NAMED(CL_MAP_FAILURE),
    MTF_NAMED(CL_MISALIGNED_SUB_BUFFER_OFFSET),
    MTF_NAMED(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
    MTF_NAMED(CL_INVALID_VALUE),
    MTF_NAMED(CL_INVALID_DEVICE_TYPE),
    MTF_NAMED(CL_INVALID_PLATFORM),
    MTF_NAMED(CL_INVALID_DEVICE),
    MTF_NAMED(CL_INVALID_CONTEXT),
    MTF_NAMED(CL_INVALID_QUEUE_PROPERTIES),
    MTF_NAMED(CL_INVALID_COMMAND_QUEUE),
    MTF_NAMED(CL_INVALID_HOST_PTR),
    MTF_NAMED(CL_INVALID_MEM_OBJECT),
    MTF_NAMED(CL_INVALID_EVENT_WAIT_LIST),
    MTF_NAMED(CL_INVALID_EVENT),
    MTF_NAMED(CL_INVALID_OPERATION),
    MTF_NAMED(CL_INVALID_BUFFER_SIZE),
    MTF_NAMED(CL_INVALID_PROPERTY),
    MTF_NAMED(CL_PLATFORM_NOT_FOUND_KHR),
};
#undef MTF_NAMED

// The range that OpenCL keeps for calls that were wrong in themselves.
constexpr cl_int kFirstInvalid = CL_INVALID_VALUE;
constexpr cl_int kLastInvalid = -999;

}  // namespace

std::string error_text(cl_int error) {
  for (const Name& name : kNames) {
    if (name.error == error) return std::string(name.text) + " (" + std::to_string(error) + ")";
  }
  return "OpenCL error " + std::to_string(error);
}

TF_Code status_code(cl_int error) {
  switch (error) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
      return TF_RESOURCE_EXHAUSTED;
    case CL_DEVICE_NOT_AVAILABLE:
      return TF_UNAVAILABLE;
    case CL_DEVICE_NOT_FOUND:
    case CL_PLATFORM_NOT_FOUND_KHR:
      return TF_NOT_FOUND;
    case CL_MEM_COPY_OVERLAP:
      return TF_INVALID_ARGUMENT;
    default:
      return error <= kFirstInvalid && error >= kLastInvalid ? TF_INVALID_ARGUMENT : TF_INTERNAL;
  }
}

void check(cl_int error, const char* function) {
  if (error == CL_SUCCESS) return;
  throw device::Failed(status_code(error), std::string(function) + ": " + error_text(error));
}

Queue make_queue(const Context& context, cl_device_id device) {
  const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
  cl_int error = CL_SUCCESS;
  Queue queue(clCreateCommandQueueWithProperties(context.get(), device, properties, &error));
  check(error, "clCreateCommandQueueWithProperties");
  return queue;
}

}  // namespace opencl
