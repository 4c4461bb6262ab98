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

// "CL_INVALID_VALUE (-30)"; a number that OpenCL does not define has no name.
std::string error_text(cl_int error);

// Never TF_OK.
TF_Code status_code(cl_int error);

// Throws device::Failed, with the name of the OpenCL function, unless `error` is CL_SUCCESS.
void check(cl_int error, const char* function);

// An in-order queue that takes the time of its commands. Throws Failed.
Queue make_queue(const Context& context, cl_device_id device);

}  // namespace opencl
