// The entry point.
#include <cstdio>

#include "kernel/status.h"
#include "kernels.h"

extern "C" TF_CAPI_EXPORT void TF_InitKernel(void) {
  // There is no status to set: what was registered until then stays.
  const auto fail = [](TF_Code code, const char* message) {
    std::fprintf(stderr, "host_kernels: registration failed with code %d: %s\n", code, message);
  };
  kernel::guarded(
      [] {
        constexpr const char* kType = MTF_HOST_KERNELS_DEVICE_TYPE;
        host_kernels::register_add(kType);
        host_kernels::register_cast(kType);
        host_kernels::register_matmul(kType);
        host_kernels::register_reductions(kType);
        host_kernels::register_relu(kType);
      },
      fail);
}
