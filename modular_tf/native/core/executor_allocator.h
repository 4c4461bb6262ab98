// Whose functions give an executor its memory: those of its SP_StreamExecutor, or of an allocator
// of the RFC of 2020-09-08.
#pragma once

#include <cstdint>
#include <memory>

#include "modular_tf/device.h"

namespace mtf {

// [any thread] The kinds are MTF_*_MEMORY. Functions but `name` and `has*` call the plugin,
// which may throw; `has*` tells whether it has what is called.
class Allocator {
 public:
  virtual ~Allocator() = default;

  // The plugin's function that allocates.
  virtual const char* name(int32_t kind) const = 0;
  virtual bool has(int32_t kind) const = 0;
  // Sets `opaque`, and `payload` where the plugin has one; NULL when there is no memory.
  virtual void allocate(const SP_Device* device, int32_t kind, uint64_t size,
                        SP_DeviceMemoryBase* memory) const = 0;
  // Does nothing where the plugin has no such function.
  virtual void deallocate(const SP_Device* device, int32_t kind,
                          SP_DeviceMemoryBase* memory) const = 0;

  virtual bool has_stats() const = 0;
  virtual bool stats(const SP_Device* device, SP_AllocatorStats* stats) const = 0;
  virtual bool has_usage() const = 0;
  virtual bool usage(const SP_Device* device, int64_t* free_bytes, int64_t* total_bytes) const = 0;
};

// Each copies its table. NULL when the host has no memory.
std::unique_ptr<Allocator> executor_allocator(const SP_StreamExecutor& table);
std::unique_ptr<Allocator> rfc_allocator(const void* fns, const void* allocator, bool unified);
std::unique_ptr<Allocator> rfc_custom_allocator(const void* fns, const void* allocator);

}  // namespace mtf
