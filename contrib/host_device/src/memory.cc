#include "memory.h"

#include <algorithm>
#include <cstdlib>

namespace host {

void* allocate_aligned(uint64_t bytes) {
  if (bytes > SIZE_MAX - kAlignment) return nullptr;
  const size_t rounded = (static_cast<size_t>(bytes) / kAlignment + 1) * kAlignment;
  return std::aligned_alloc(kAlignment, rounded);
}

void free_aligned(void* memory) { std::free(memory); }

void Memory::count(int64_t bytes) {
  ++counts_.allocations;
  counts_.bytes_in_use += bytes;
  counts_.peak_bytes_in_use = std::max(counts_.peak_bytes_in_use, counts_.bytes_in_use);
  counts_.largest_bytes = std::max(counts_.largest_bytes, bytes);
}

void* Memory::allocate(uint64_t bytes) {
  void* memory = allocate_aligned(bytes);
  if (memory == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  try {
    sizes_.emplace(memory, static_cast<int64_t>(bytes));
  } catch (const std::bad_alloc&) {
    free_aligned(memory);
    return nullptr;
  }
  count(static_cast<int64_t>(bytes));
  return memory;
}

void Memory::deallocate(void* memory) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(memory);
    if (found == sizes_.end()) return;
    counts_.bytes_in_use -= found->second;
    sizes_.erase(found);
  }
  free_aligned(memory);
}

MemoryCounts Memory::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace host
