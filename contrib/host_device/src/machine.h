// What the operating system says of this machine, and how fast it is. Nothing here is guessed.
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

// From /proc/meminfo, else from sysinfo; `free` is what could be had without swapping. False when neither
// answers.
bool memory_usage(int64_t& free, int64_t& total);

// Speeds of this machine, measured once per process, when first asked for (a few hundredths of a
// second each). They are estimates of what plain code reaches, not data-sheet numbers.

// Bytes per second read and written by one thread that copies a 32 MiB block; -1 without memory
// for it. Where the last-level cache is bigger than that, it is the cache's speed.
int64_t memory_bandwidth();

// 1e9 multiplications and additions per second: what one thread reaches in a loop of the compiler's
// baseline vector code, times the CPUs that this process may use.
double gflops();

}  // namespace host
