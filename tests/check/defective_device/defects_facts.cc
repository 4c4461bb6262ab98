// Defects of what a device says of itself.
#include <limits>

#include "defects.h"

namespace {

using namespace defective;

void create_with_odd_name(const SP_Platform* platform, SE_CreateDeviceParams* params,
                          TF_Status* status) {
  original.platform_fns.create_device(platform, params, status);
  params->device->hardware_name = "DEFECT 1000\x01";
}

void create_with_odd_bus(const SP_Platform* platform, SE_CreateDeviceParams* params,
                         TF_Status* status) {
  original.platform_fns.create_device(platform, params, status);
  params->device->pci_bus_id = "bus 2, slot 1";
}

int32_t change_node(const SP_Device*) {
  static int32_t node = 0;
  return node++ % 2;
}

}  // namespace

DEFECTS(facts) = {
    {"SE-124", [](Tables& tables) { tables.platform_fns.create_device = create_with_odd_name; }},
    {"SE-125", [](Tables& tables) { tables.platform_fns.create_device = create_with_odd_bus; }},
    {"SE-126",
     [](Tables& tables) {
       tables.device_fns.get_numa_node = [](const SP_Device*) { return int32_t{1} << 20; };
     }},
    {"SE-127",
     [](Tables& tables) {
       tables.device_fns.get_memory_bandwidth = [](const SP_Device*) { return int64_t{25}; };
     }},
    {"SE-128",
     [](Tables& tables) {
       tables.device_fns.get_gflops = [](const SP_Device*) {
         return std::numeric_limits<double>::infinity();
       };
     }},
    {"SE-129", [](Tables& tables) { tables.device_fns.get_numa_node = change_node; }},
};
