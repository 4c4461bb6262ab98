#include "memory.h"

#include <limits>
#include <new>
#include <utility>

namespace opencl {
namespace {

using device::kAlignment;

// The first aligned address of a block that has kAlignment bytes to spare.
void* aligned_in(void* block) {
  const auto address = reinterpret_cast<uintptr_t>(block);
  return reinterpret_cast<void*>((address + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace

SharedMemory::SharedMemory(std::shared_ptr<const Context> context, cl_svm_mem_flags flags,
                           uint64_t limit)
    : context_(std::move(context)), flags_(flags), limit_(limit) {}

SharedMemory::~SharedMemory() {
  for (const auto& [memory, block] : blocks_) clSVMFree(context_->get(), block.start);
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
  counts_.add(static_cast<int64_t>(bytes));
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

device::MemoryCounts SharedMemory::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

PinnedMemory::PinnedMemory(std::shared_ptr<const Context> context, cl_device_id device)
    : context_(std::move(context)), queue_(make_queue(*context_, device)) {}

PinnedMemory::~PinnedMemory() {
  for (const auto& [memory, mapped] : mapped_) unmap(mapped);
}

PinnedMemory::Mapped PinnedMemory::map(size_t bytes) const {
  cl_int error = CL_SUCCESS;
  Buffer buffer(clCreateBuffer(context_->get(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes,
                               nullptr, &error));
  check(error, "clCreateBuffer");
  void* start = clEnqueueMapBuffer(queue_.get(), buffer.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                   0, bytes, 0, nullptr, nullptr, &error);
  check(error, "clEnqueueMapBuffer");
  return {std::move(buffer), start};
}

// There is nobody left to tell of a failure: the address is gone either way.
void PinnedMemory::unmap(const Mapped& mapped) const {
  clEnqueueUnmapMemObject(queue_.get(), mapped.buffer.get(), mapped.start, 0, nullptr, nullptr);
  clFinish(queue_.get());
}

void* PinnedMemory::allocate(uint64_t bytes) {
  if (bytes > std::numeric_limits<size_t>::max() - kAlignment) {
    check(CL_OUT_OF_HOST_MEMORY, "clCreateBuffer");
  }
  Mapped mapped = map(static_cast<size_t>(bytes) + kAlignment);
  void* memory = aligned_in(mapped.start);
  const std::lock_guard lock(mutex_);
  mapped_[memory] = std::move(mapped);
  return memory;
}

void PinnedMemory::deallocate(void* memory) {
  Mapped mapped;
  {
    const std::lock_guard lock(mutex_);
    const auto found = mapped_.find(memory);
    if (found == mapped_.end()) return;
    mapped = std::move(found->second);
    mapped_.erase(found);
  }
  unmap(mapped);
}

}  // namespace opencl
