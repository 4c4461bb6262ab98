/* What other libraries may do with a stream of this device: an SP_Stream of opencl_device is the
 * address of an OpenCLDeviceStream. Kernels get it from TF_GetStream, programs in Python from
 * `Stream.native_handle`. Define CL_TARGET_OPENCL_VERSION before. */
#pragma once

#include <CL/cl.h>
#include <stdint.h>

#include "modular_tf/device.h"

#define OPENCL_DEVICE_STREAM_TAG UINT64_C(0x314d5254534c434f) /* "OCLSTRM1" in memory */

/* The objects live as long as the stream; who keeps one for longer retains it. Memory of the device
 * is shared virtual memory of `context`: its addresses go to clSetKernelArgSVMPointer as they are. */
typedef struct OpenCLDeviceStream {
  uint64_t tag; /* OPENCL_DEVICE_STREAM_TAG: kernels are found by the type of a device alone, and the
                 * device may be another plugin's */
  cl_context context;
  cl_device_id device;
  cl_command_queue queue; /* runs commands in order */

  /* Tells the stream of a command that the caller has enqueued in `queue`: it is flushed, and its
   * failure becomes the stream's. Not needed for the order of work, nor for waiting. The event stays
   * the caller's. [any thread] */
  void (*add)(SP_Stream stream, cl_event event, TF_Status* status);
} OpenCLDeviceStream;
