// Which OpenCL devices this plugin offers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "opencl.h"

namespace opencl {

// All devices belong to one OpenCL platform: within it they share a context, and so addresses and
// events mean the same to each of them.
struct Found {
  cl_platform_id platform = nullptr;
  std::vector<cl_device_id> devices;  // none: there is no OpenCL here that fits
  bool shares_with_host = false;      // every device has memory that the host may use meanwhile
};

// The platform named by MTF_OPENCL_PLATFORM, else the first one that has a device with shared
// virtual memory and profiling. Looked up once per process.
//
// Throws device::Failed when the named platform does not exist, or when drivers failed and none fits.
const Found& found_devices();

// The context of all devices found; lives as long as anybody holds it. [any thread]
std::shared_ptr<const Context> shared_context();

// A text of a platform or device.
std::string platform_text(cl_platform_id platform, cl_platform_info what);
std::string device_text(cl_device_id device, cl_device_info what);

// A number of a device; `otherwise` where the driver does not know the question.
template <class Number>
Number device_number(cl_device_id device, cl_device_info what, Number otherwise) {
  Number number = otherwise;
  const cl_int error = clGetDeviceInfo(device, what, sizeof(number), &number, nullptr);
  return error == CL_SUCCESS ? number : otherwise;
}

}  // namespace opencl
