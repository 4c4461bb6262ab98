#include "spare_block.h"

#include <sys/mman.h>

#include <cstdlib>
#include <utility>

namespace host {

namespace {

constexpr size_t kLargest = size_t{256} << 20;

}  // namespace

void* SpareBlock::take(size_t bytes) {
  if (memory_ == nullptr || bytes != bytes_) return nullptr;
  return std::exchange(memory_, nullptr);
}

void* SpareBlock::keep(void* memory, size_t bytes) {
  if (bytes > kLargest) return memory;
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

}  // namespace host
