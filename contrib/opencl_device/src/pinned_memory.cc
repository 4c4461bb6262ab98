#include "pinned_memory.h"

#include <limits>
#include <utility>

#include "cl_error.h"
#include "memory.h"
#include "queue.h"

namespace opencl {

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
