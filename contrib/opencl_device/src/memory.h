// Memory that the device and the host know under one address, OpenCL's shared virtual memory; and host
// memory that the driver allocates. OpenCL promises an alignment of no more than 128, so each block has
// kAlignment bytes to spare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "device/plugin.h"
#include "opencl.h"

namespace opencl {

// [any thread]
class SharedMemory {
 public:
  // `flags` as clSVMAlloc takes them; no more than `limit` bytes are in use at once.
  SharedMemory(std::shared_ptr<const Context> context, cl_svm_mem_flags flags, uint64_t limit);
  SharedMemory(const SharedMemory&) = delete;
  ~SharedMemory();  // frees what is left

  // NULL when there is none left. 0 bytes give an address too.
  void* allocate(uint64_t bytes);

  // Hosts pass the address alone, so the sizes are kept here. An address that is not of this
  // memory is left alone.
  void deallocate(void* memory);

  device::MemoryCounts counts() const;
  uint64_t limit() const { return limit_; }

 private:
  struct Block {
    void* start;  // as clSVMAlloc gave it
    int64_t bytes;
  };

  const std::shared_ptr<const Context> context_;
  const cl_svm_mem_flags flags_;
  const uint64_t limit_;
  mutable std::mutex mutex_;
  std::map<void*, Block> blocks_;
  device::MemoryCounts counts_;
};

// Host memory that the driver can copy from and to without a detour.
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
