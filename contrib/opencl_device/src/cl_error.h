// OpenCL's error numbers as exceptions, with their names and the status codes that fit them.
#pragma once

#include <stdexcept>
#include <string>

#include "modular_tf/status.h"
#include "opencl.h"

namespace opencl {

// "CL_INVALID_VALUE (-30)"; a number that OpenCL does not define has no name.
std::string error_text(cl_int error);

// Never TF_OK.
TF_Code status_code(cl_int error);

// A failure with the status code that the host shall see.
class Failed : public std::runtime_error {
 public:
  Failed(TF_Code status, const std::string& message) : std::runtime_error(message), code(status) {}
  const TF_Code code;
};

// Throws Failed, with the name of the OpenCL function, unless `error` is CL_SUCCESS.
void check(cl_int error, const char* function);

}  // namespace opencl
