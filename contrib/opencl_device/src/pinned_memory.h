// Host memory that the driver allocates, and so can copy from and to without a detour.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "opencl.h"

namespace opencl {

// Buffers of kind CL_MEM_ALLOC_HOST_PTR that stay mapped as long as they live. [any thread]
class PinnedMemory {
 public:
  // Throws Failed.
  PinnedMemory(std::shared_ptr<const Context> context, cl_device_id device);
  PinnedMemory(const PinnedMemory&) = delete;
  ~PinnedMemory();  // frees what is left

  // Aligned as device memory is. 0 bytes give an address too. Throws Failed.
  void* allocate(uint64_t bytes);

  // An address that is not of this memory is left alone.
  void deallocate(void* memory);

 private:
  struct Mapped {
    Buffer buffer;
    void* start;  // as OpenCL mapped it
  };
  Mapped map(size_t bytes) const;
  void unmap(const Mapped& mapped) const;

  const std::shared_ptr<const Context> context_;
  const Queue queue_;  // maps and unmaps
  std::mutex mutex_;
  std::map<void*, Mapped> mapped_;
};

}  // namespace opencl
