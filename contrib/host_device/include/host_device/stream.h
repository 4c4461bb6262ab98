/* What kernels in other libraries may do with a stream of this device, which TF_GetStream gives
 * them: an SP_Stream of host_device is the address of a HostDeviceStream. */
#pragma once

#include <stdint.h>

#include "modular_tf/device.h"

#define HOST_DEVICE_STREAM_TAG UINT64_C(0x314d525453545348) /* "HSTSTRM1" in memory */

typedef struct HostDeviceStream {
  uint64_t tag; /* HOST_DEVICE_STREAM_TAG: kernels are found by the type of a device alone, and the
                 * device may be another plugin's */

  /* Returns when all work that the stream holds is done. RESOURCE_EXHAUSTED: no memory to wait. A
   * host callback of the stream must not call it. [any thread] */
  void (*wait)(SP_Stream stream, TF_Status* status);
} HostDeviceStream;
