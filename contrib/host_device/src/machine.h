// What the operating system says of this machine. Nothing here is guessed.
#pragma once

#include <cstdint>
#include <string>

namespace host {

// "model name" of /proc/cpuinfo; where it has none (as on ARM) the machine name of uname.
std::string hardware_name();

// "vendor_id" of /proc/cpuinfo, or "" where it has none.
std::string vendor_name();

// The NUMA node when there is one only. With several the device spans them all: -1, not known.
int32_t numa_node();

struct MemoryUsage {
  int64_t free_bytes = 0;  // what could be had without swapping
  int64_t total_bytes = 0;
};

// From /proc/meminfo, else from sysinfo. False when neither answers.
bool memory_usage(MemoryUsage& usage);

// CPUs that this process may run on; at least 1.
int usable_cpus();

}  // namespace host
