#include "memory.h"

#include <algorithm>
#include <new>
#include <utility>

namespace opencl {

void* aligned_in(void* block) {
  const auto address = reinterpret_cast<uintptr_t>(block);
  return reinterpret_cast<void*>((address + kAlignment - 1) / kAlignment * kAlignment);
}

SharedMemory::SharedMemory(std::shared_ptr<const Context> context, cl_svm_mem_flags flags,
                           uint64_t limit)
    : context_(std::move(context)), flags_(flags), limit_(limit) {}

SharedMemory::~SharedMemory() {
  for (const auto& [memory, block] : blocks_) clSVMFree(context_->get(), block.start);
}

void SharedMemory::count(int64_t bytes) {
  ++counts_.allocations;
  counts_.bytes_in_use += bytes;
  counts_.peak_bytes_in_use = std::max(counts_.peak_bytes_in_use, counts_.bytes_in_use);
  counts_.largest_bytes = std::max(counts_.largest_bytes, bytes);
}

void* SharedMemory::allocate(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > limit_ - static_cast<uint64_t>(counts_.bytes_in_use)) return nullptr;
  void* start = clSVMAlloc(context_->get(), flags_, static_cast<size_t>(bytes) + kAlignment, 0);
  if (start == nullptr) return nullptr;
  void* memory = aligned_in(start);
  try {
    blocks_[memory] = {start, static_cast<int64_t>(bytes)};
  } catch (const std::bad_alloc&) {
    clSVMFree(context_->get(), start);
    return nullptr;
  }
  count(static_cast<int64_t>(bytes));
  return memory;
}

void SharedMemory::deallocate(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(memory);
  if (found == blocks_.end()) return;
  clSVMFree(context_->get(), found->second.start);
  counts_.bytes_in_use -= found->second.bytes;
  blocks_.erase(found);
}

MemoryCounts SharedMemory::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace opencl
