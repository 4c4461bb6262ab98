#include "memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <utility>

namespace host {
namespace {

using device::kAlignment;

// Fewer and bigger pages: writing to fresh memory is several times as fast.
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHugeFrom = 2 * kHugePage;

bool is_huge(uint64_t bytes) { return bytes >= kHugeFrom; }

// Of at most SIZE_MAX - kHugePage bytes.
size_t rounded_up(uint64_t bytes) {
  const size_t unit = is_huge(bytes) ? kHugePage : kAlignment;
  return (static_cast<size_t>(bytes) + unit - 1) / unit * unit;
}

constexpr size_t kLargestSpare = size_t{256} << 20;

}  // namespace

void* SpareBlock::take(size_t bytes) {
  if (memory_ == nullptr || bytes != bytes_) return nullptr;
  return std::exchange(memory_, nullptr);
}

void* SpareBlock::keep(void* memory, size_t bytes) {
  if (bytes > kLargestSpare) return memory;
#ifdef MADV_FREE
  madvise(memory, bytes, MADV_FREE);  // no harm if it is refused
#endif
  bytes_ = bytes;
  return std::exchange(memory_, memory);
}

bool SpareBlock::drop() {
  void* memory = std::exchange(memory_, nullptr);
  std::free(memory);
  return memory != nullptr;
}

void* allocate_aligned(uint64_t bytes) {
  if (bytes > SIZE_MAX - kHugePage) return nullptr;
  const size_t rounded = rounded_up(bytes);
  if (!is_huge(bytes)) return std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
  void* memory = std::aligned_alloc(kHugePage, rounded);
  if (memory != nullptr) madvise(memory, rounded, MADV_HUGEPAGE);  // no harm if it is refused
  return memory;
}

void free_aligned(void* memory) { std::free(memory); }

void* Memory::take_spare(uint64_t bytes) {
  if (!is_huge(bytes) || bytes > SIZE_MAX - kHugePage) return nullptr;
  const std::lock_guard lock(mutex_);
  return spare_.take(rounded_up(bytes));
}

bool Memory::drop_spare() {
  const std::lock_guard lock(mutex_);
  return spare_.drop();
}

void* Memory::allocate(uint64_t bytes) {
  void* memory = take_spare(bytes);
  if (memory == nullptr) memory = allocate_aligned(bytes);
  if (memory == nullptr && drop_spare()) memory = allocate_aligned(bytes);
  if (memory == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  try {
    sizes_.emplace(memory, static_cast<int64_t>(bytes));
  } catch (const std::bad_alloc&) {
    free_aligned(memory);
    return nullptr;
  }
  counts_.add(static_cast<int64_t>(bytes));
  return memory;
}

void Memory::deallocate(void* memory) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(memory);
    if (found == sizes_.end()) return;
    const int64_t bytes = found->second;
    counts_.bytes_in_use -= bytes;
    sizes_.erase(found);
    if (is_huge(bytes)) memory = spare_.keep(memory, rounded_up(bytes));
  }
  free_aligned(memory);
}

device::MemoryCounts Memory::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace host
