// Spoiling copies and fills of one size, by which a check is told from all others.
#pragma once

#include <cstddef>

#include "modular_tf/device.h"

namespace defective {

// The memory that many bytes further on; behind for negative ones.
inline SP_DeviceMemoryBase moved(const SP_DeviceMemoryBase* memory, std::ptrdiff_t by) {
  SP_DeviceMemoryBase elsewhere = *memory;
  elsewhere.opaque = static_cast<char*>(memory->opaque) + by;
  return elsewhere;
}

inline const void* moved(const void* bytes, std::ptrdiff_t by) {
  return static_cast<const char*>(bytes) + by;
}

}  // namespace defective
