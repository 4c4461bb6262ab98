// The memory of one device: taken from the heap, and counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "spare_block.h"

namespace host {

// What TensorFlow's newer hosts and DLPack ask for; more than the 64 that vector code needs.
constexpr size_t kAlignment = 256;

// Not counted. NULL when there is none left. 0 bytes give an address too.
void* allocate_aligned(uint64_t bytes);
void free_aligned(void* memory);

struct MemoryCounts {
  int64_t allocations = 0;  // ever made
  int64_t bytes_in_use = 0;
  int64_t peak_bytes_in_use = 0;
  int64_t largest_bytes = 0;
};

// [any thread]
class Memory {
 public:
  // NULL when there is none left. What it holds is not set.
  void* allocate(uint64_t bytes);

  // Hosts pass the address alone, so the sizes are kept here. An address that is not of this
  // memory is left alone.
  void deallocate(void* memory);

  MemoryCounts counts() const;

 private:
  void* take_spare(uint64_t bytes);
  bool drop_spare();
  void count(int64_t bytes);

  mutable std::mutex mutex_;
  std::unordered_map<void*, int64_t> sizes_;
  SpareBlock spare_;
  MemoryCounts counts_;
};

}  // namespace host
