#include "slots.h"

namespace opencl {
namespace {

// OpenCL tells neither: clock and compute units say nothing of the work done per cycle, and a
// measurement would need a compiler. Negative means "not known".
int32_t get_numa_node(const SP_Device*) { return -1; }
int64_t get_memory_bandwidth(const SP_Device*) { return -1; }
double get_gflops(const SP_Device*) { return -1.0; }

}  // namespace

void fill_device_fns(SP_DeviceFns& fns) {
  fns.struct_size = SP_DEVICE_FNS_STRUCT_SIZE;
  fns.get_numa_node = get_numa_node;
  fns.get_memory_bandwidth = get_memory_bandwidth;
  fns.get_gflops = get_gflops;
}

}  // namespace opencl
