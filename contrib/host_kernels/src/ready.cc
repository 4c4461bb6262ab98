#include "ready.h"

#include "host_device/stream.h"

namespace host_kernels {

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
