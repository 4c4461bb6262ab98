#include "buffer.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "fork_lock.h"
#include "modular_tf/tensor.h"

namespace mtf::kernels {
namespace {

alignas(kAlignment) char nothing[kAlignment];

// Numbers of lent memory. Reserved for at least one more whenever a number is given out, so that the
// end of a buffer needs no memory.
struct Keepers {
  Lock lock;
  uint64_t last = 0;
  size_t in_use = 0;
  std::vector<uint64_t> released;
};

Keepers& keepers() {
  static auto* const made = new Keepers;  // never destroyed: plugins' threads may outlive destructors
  return *made;
}

void release_host(Buffer* buffer) {
  if (buffer->has_strings) {
    auto* strings = static_cast<TF_TString*>(buffer->data);
    for (size_t index = 0; index < buffer->size / sizeof *strings; ++index) {
      TF_StringDealloc(strings + index);
    }
  }
  std::free(buffer->data);
}

void release_device(Buffer* buffer) { buffer->place->free(buffer->place, buffer->owner); }

void release_of_plugin(Buffer* buffer) {
  if (buffer->deallocator != nullptr) {
    buffer->deallocator(buffer->data, buffer->size, buffer->argument);
  }
}

void release_lent(Buffer* buffer) {
  if (buffer->keeper == 0) return;
  const LockGuard guard(keepers().lock);
  keepers().released.push_back(buffer->keeper);  // reserved by new_keeper
}

BufferRef new_buffer(void (*release)(Buffer*)) {
  auto* buffer = new (std::nothrow) Buffer;
  if (buffer != nullptr) buffer->release = release;
  return BufferRef(buffer);
}

}  // namespace

BufferRef::~BufferRef() {
  if (buffer_ == nullptr) return;
  if (buffer_->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (buffer_->release != nullptr) buffer_->release(buffer_);
  delete buffer_;
}

void* empty_data() noexcept { return nothing; }

BufferRef new_host_buffer(size_t size, bool has_strings) noexcept {
  BufferRef buffer = new_buffer(release_host);
  if (!buffer) return buffer;
  const size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  if (rounded < size) {
    buffer->release = nullptr;
    return {};
  }
  buffer->data = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
  if (buffer->data == nullptr) return {};
  if (has_strings) std::memset(buffer->data, 0, size);  // empty small strings
  buffer->size = size;
  buffer->is_own = true;
  buffer->has_strings = has_strings;
  return buffer;
}

BufferRef new_device_buffer(void* data, size_t size, void* owner,
                            const mtf_kernel_place* place) noexcept {
  BufferRef buffer = new_buffer(release_device);
  if (!buffer) return buffer;
  buffer->data = data;
  buffer->size = size;
  buffer->owner = owner;
  buffer->place = place;
  buffer->is_own = true;
  buffer->is_on_host = place->is_host != 0;
  return buffer;
}

BufferRef new_plugin_buffer(void* data, size_t size, void (*deallocator)(void*, size_t, void*),
                            void* argument) noexcept {
  BufferRef buffer = new_buffer(release_of_plugin);
  if (!buffer) return buffer;
  buffer->data = data;
  buffer->size = size;
  buffer->deallocator = deallocator;
  buffer->argument = argument;
  return buffer;
}

BufferRef new_lent_buffer(void* data, size_t size, bool is_on_host) noexcept {
  BufferRef buffer = new_buffer(release_lent);
  if (!buffer) return buffer;
  buffer->data = data;
  buffer->size = size;
  buffer->is_on_host = is_on_host;
  return buffer;
}

uint64_t new_keeper() noexcept {
  Keepers& all = keepers();
  const LockGuard guard(all.lock);
  try {
    all.released.reserve(all.released.size() + all.in_use + 1);
  } catch (const std::bad_alloc&) {
    return 0;
  }
  ++all.in_use;
  return ++all.last;
}

int32_t take_released_keepers(uint64_t* numbers, int32_t most) noexcept {
  Keepers& all = keepers();
  const LockGuard guard(all.lock);
  int32_t taken = 0;
  for (; taken < most && !all.released.empty(); ++taken, --all.in_use) {
    numbers[taken] = all.released.back();
    all.released.pop_back();
  }
  return taken;
}

}  // namespace mtf::kernels
