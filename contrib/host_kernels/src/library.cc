// The entry point, and what the kernels share.
#include <algorithm>
#include <cstdio>
#include <string>

#include "host_device/stream.h"
#include "kernel/status.h"
#include "kernels.h"

namespace host_kernels {
namespace {

// The size of a dimension, counted from the last one; 1 where there is none.
int64_t size_from_end(const kernel::Shape& shape, size_t at) {
  return at < shape.size() ? shape[shape.size() - 1 - at] : 1;
}

}  // namespace

Strides strides_of(const kernel::Shape& shape) {
  Strides strides(shape.size());
  int64_t step = 1;
  for (size_t at = shape.size(); at-- > 0; step *= shape[at]) strides[at] = step;
  return strides;
}

kernel::Shape broadcast_shape(const char* op, const kernel::Shape& left,
                              const kernel::Shape& right) {
  kernel::Shape wide(std::max(left.size(), right.size()));
  for (size_t at = 0; at < wide.size(); ++at) {
    const int64_t one = size_from_end(left, at);
    const int64_t other = size_from_end(right, at);
    if (one != other && one != 1 && other != 1) {
      throw kernel::Failed(TF_INVALID_ARGUMENT,
                           std::string(op) + ": the shapes " + kernel::text_of(left) + " and " +
                               kernel::text_of(right) + " cannot be broadcast to one");
    }
    wide[wide.size() - 1 - at] = one == 1 ? other : one;
  }
  return wide;
}

Strides broadcast_strides(const kernel::Shape& shape, const kernel::Shape& wide) {
  Strides own = strides_of(shape);
  for (size_t at = 0; at < shape.size(); ++at) {
    if (shape[at] == 1) own[at] = 0;
  }
  own.insert(own.begin(), wide.size() - shape.size(), 0);
  return own;
}

void await_inputs(const kernel::Execution& execution) {
  SP_Stream stream = execution.stream();
  if (stream == nullptr) return;
  const auto* shared = reinterpret_cast<const HostDeviceStream*>(stream);
  if (shared->tag != HOST_DEVICE_STREAM_TAG) {
    throw kernel::Failed(TF_FAILED_PRECONDITION,
                         "these kernels know the streams of host_device only, and the devices of type "
                         MTF_HOST_KERNELS_DEVICE_TYPE
                         " are another plugin's; build them for the type of host_device, with "
                         "-DMTF_HOST_KERNELS_DEVICE_TYPE=...");
  }
  kernel::Status status;
  shared->wait(stream, status.get());
  status.check();
}

}  // namespace host_kernels

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
