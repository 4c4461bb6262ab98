// Speeds of this machine, measured once per process, when first asked for (a few hundredths of a
// second each). They are estimates of what plain code reaches, not data-sheet numbers.
#pragma once

#include <cstdint>

namespace host {

// Bytes per second read and written by one thread that copies a 32 MiB block; -1 without memory
// for it. Where the last-level cache is bigger than that, it is the cache's speed.
int64_t memory_bandwidth();

// 1e9 multiplications and additions per second: what one thread reaches in a loop of the compiler's
// baseline vector code, times the CPUs that this process may use.
double gflops();

}  // namespace host
