// OpenCL's C interface, with handles that count their references.
#pragma once

#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <utility>

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

}  // namespace opencl
