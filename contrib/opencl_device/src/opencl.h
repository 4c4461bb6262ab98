// OpenCL's C interface, with handles that count their references, and error numbers as exceptions.
#pragma once

#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <string>
#include <utility>

#include "device/plugin.h"

namespace opencl {

// Owns one reference of an OpenCL object, or nothing. Copies take a reference of their own.
// [any thread], one object at a time
template <class Raw, cl_int (*Retain)(Raw), cl_int (*Release)(Raw)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(Raw raw) : raw_(raw) {}  // takes over the caller's reference
  Handle(const Handle& other) : raw_(other.raw_) {
    if (raw_ != nullptr) Retain(raw_);
  }
  Handle(Handle&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Handle() {
    if (raw_ != nullptr) Release(raw_);
  }

  Raw get() const { return raw_; }
  explicit operator bool() const { return raw_ != nullptr; }

 private:
  Raw raw_ = nullptr;
};

using Context = Handle<cl_context, clRetainContext, clReleaseContext>;
using Queue = Handle<cl_command_queue, clRetainCommandQueue, clReleaseCommandQueue>;
using Buffer = Handle<cl_mem, clRetainMemObject, clReleaseMemObject>;

// "CL_INVALID_VALUE (-30)"; a number that is not listed has no name.
inline std::string error_text(cl_int error) {
  const char* name = nullptr;
  switch (error) {
#define MTF_NAMED(error) \
  case error: name = #error; break;
    MTF_NAMED(CL_DEVICE_NOT_FOUND)
    MTF_NAMED(CL_DEVICE_NOT_AVAILABLE)
    MTF_NAMED(CL_COMPILER_NOT_AVAILABLE)
    MTF_NAMED(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    MTF_NAMED(CL_OUT_OF_RESOURCES)
    MTF_NAMED(CL_OUT_OF_HOST_MEMORY)
    MTF_NAMED(CL_PROFILING_INFO_NOT_AVAILABLE)
    MTF_NAMED(CL_MEM_COPY_OVERLAP)
    MTF_NAMED(CL_MAP_FAILURE)
    MTF_NAMED(CL_MISALIGNED_SUB_BUFFER_OFFSET)
    MTF_NAMED(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    MTF_NAMED(CL_INVALID_VALUE)
    MTF_NAMED(CL_INVALID_DEVICE_TYPE)
    MTF_NAMED(CL_INVALID_PLATFORM)
    MTF_NAMED(CL_INVALID_DEVICE)
    MTF_NAMED(CL_INVALID_CONTEXT)
    MTF_NAMED(CL_INVALID_QUEUE_PROPERTIES)
    MTF_NAMED(CL_INVALID_COMMAND_QUEUE)
    MTF_NAMED(CL_INVALID_HOST_PTR)
    MTF_NAMED(CL_INVALID_MEM_OBJECT)
    MTF_NAMED(CL_INVALID_EVENT_WAIT_LIST)
    MTF_NAMED(CL_INVALID_EVENT)
    MTF_NAMED(CL_INVALID_OPERATION)
    MTF_NAMED(CL_INVALID_BUFFER_SIZE)
    MTF_NAMED(CL_INVALID_PROPERTY)
    MTF_NAMED(CL_PLATFORM_NOT_FOUND_KHR)
#undef MTF_NAMED
    default: return "OpenCL error " + std::to_string(error);
  }
  return std::string(name) + " (" + std::to_string(error) + ")";
}

// Never TF_OK.
inline TF_Code status_code(cl_int error) {
  constexpr cl_int kLastInvalid = -999;  // of the range for calls that were wrong in themselves
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
      return error <= CL_INVALID_VALUE && error >= kLastInvalid ? TF_INVALID_ARGUMENT : TF_INTERNAL;
  }
}

// Throws device::Failed, with the name of the OpenCL function, unless `error` is CL_SUCCESS.
inline void check(cl_int error, const char* function) {
  if (error == CL_SUCCESS) return;
  throw device::Failed(status_code(error), std::string(function) + ": " + error_text(error));
}

// An in-order queue that takes the time of its commands. Throws Failed.
inline Queue make_queue(const Context& context, cl_device_id device) {
  const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
  cl_int error = CL_SUCCESS;
  Queue queue(clCreateCommandQueueWithProperties(context.get(), device, properties, &error));
  check(error, "clCreateCommandQueueWithProperties");
  return queue;
}

}  // namespace opencl
