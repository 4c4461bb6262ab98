// Memory that the device and the host know under one address: OpenCL's shared virtual memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "opencl.h"

namespace opencl {

// What TensorFlow's newer hosts and DLPack ask for; OpenCL itself promises no more than 128.
constexpr size_t kAlignment = 256;

// The first aligned address of a block that has kAlignment bytes to spare.
void* aligned_in(void* block);

struct MemoryCounts {
  int64_t allocations = 0;  // ever made
  int64_t bytes_in_use = 0;
  int64_t peak_bytes_in_use = 0;
  int64_t largest_bytes = 0;
};

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

  MemoryCounts counts() const;
  uint64_t limit() const { return limit_; }

 private:
  struct Block {
    void* start;  // as clSVMAlloc gave it
    int64_t bytes;
  };
  void count(int64_t bytes);

  const std::shared_ptr<const Context> context_;
  const cl_svm_mem_flags flags_;
  const uint64_t limit_;
  mutable std::mutex mutex_;
  std::map<void*, Block> blocks_;
  MemoryCounts counts_;
};

}  // namespace opencl
