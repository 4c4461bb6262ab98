#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

namespace host {

namespace {

// Fewer and bigger pages: writing to fresh memory is several times as fast.
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHugeFrom = 2 * kHugePage;

}  // namespace

void* allocate_aligned(uint64_t bytes) {
  if (bytes > SIZE_MAX - kHugePage) return nullptr;
  const size_t unit = bytes < kHugeFrom ? kAlignment : kHugePage;
  const size_t rounded = (static_cast<size_t>(bytes) + unit - 1) / unit * unit;
  void* memory = std::aligned_alloc(unit, rounded == 0 ? unit : rounded);
  const bool huge = memory != nullptr && unit == kHugePage;
  if (huge) madvise(memory, rounded, MADV_HUGEPAGE);  // no harm if it is refused
  return memory;
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
