// The entry point.
#include <cstdio>

#include "kernel/status.h"
#include "kernels.h"

extern "C" TF_CAPI_EXPORT void TF_InitKernel(void) {
  // There is no status to set: what was registered until then stays.
  const auto fail = [](TF_Code code, const char* message) {
    std::fprintf(stderr, "opencl_kernels: registration failed with code %d: %s\n", code, message);
  };
  kernel::guarded(
      [] {
        opencl_kernels::register_elementwise(MTF_OPENCL_KERNELS_DEVICE_TYPE);
        opencl_kernels::register_matmul(MTF_OPENCL_KERNELS_DEVICE_TYPE);
      },
      fail);
}
