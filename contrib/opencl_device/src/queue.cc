#include "queue.h"

#include "cl_error.h"

namespace opencl {

Queue make_queue(const Context& context, cl_device_id device) {
  const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
  cl_int error = CL_SUCCESS;
  Queue queue(clCreateCommandQueueWithProperties(context.get(), device, properties, &error));
  check(error, "clCreateCommandQueueWithProperties");
  return queue;
}

}  // namespace opencl
