// Command queues as this plugin uses them.
#pragma once

#include "opencl.h"

namespace opencl {

// An in-order queue that takes the time of its commands. Throws Failed.
Queue make_queue(const Context& context, cl_device_id device);

}  // namespace opencl
