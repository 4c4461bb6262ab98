#include "machine.h"
#include "measurements.h"
#include "slots.h"

namespace host {
namespace {

int32_t get_numa_node(const SP_Device*) { return numa_node(); }
int64_t get_memory_bandwidth(const SP_Device*) { return memory_bandwidth(); }
double get_gflops(const SP_Device*) { return gflops(); }

}  // namespace

void fill_device_fns(SP_DeviceFns& fns) {
  fns.struct_size = SP_DEVICE_FNS_STRUCT_SIZE;
  fns.get_numa_node = get_numa_node;
  fns.get_memory_bandwidth = get_memory_bandwidth;
  fns.get_gflops = get_gflops;
}

}  // namespace host
