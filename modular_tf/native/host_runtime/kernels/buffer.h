// Memory that tensors share, and who gets it back at the end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "host_table.h"

namespace mtf::kernels {

constexpr size_t kAlignment = 64;

using Deallocator = void (*)(void* data, size_t size, void* argument);

struct Buffer {
  void* data = nullptr;
  size_t size = 0;
  std::atomic<int> references{1};
  // Of the memory, and of the buffer itself, at the end.
  void (*release)(Buffer* buffer) = nullptr;
  bool is_own = false;      // the host's: nobody outside uses it, so that it may be written anew
  bool is_on_host = true;
  bool has_strings = false;
  const mtf_kernel_place* place = nullptr;  // of device memory: who gets it back
  void* owner = nullptr;                    // what they get
  Deallocator deallocator = nullptr;  // of a plugin's memory
  void* argument = nullptr;
  const void* plugin = nullptr;  // whose that is, for mtf_plugin_calls
  void* stream = nullptr;  // of device memory: where work may be queued that uses it
  uint64_t keeper = 0;  // of memory that Python lends: the number by which it keeps that
  Buffer* next = nullptr;  // in the list of those that are released

  bool is_shared() const { return references.load(std::memory_order_acquire) > 1; }
};

// A hold on a buffer.
class BufferRef {
 public:
  BufferRef() = default;
  explicit BufferRef(Buffer* taken_over) : buffer_(taken_over) {}
  BufferRef(const BufferRef& other) : buffer_(other.buffer_) {
    if (buffer_ != nullptr) buffer_->references.fetch_add(1, std::memory_order_relaxed);
  }
  BufferRef(BufferRef&& other) noexcept : buffer_(other.release()) {}
  BufferRef& operator=(BufferRef other) noexcept {
    Buffer* mine = buffer_;
    buffer_ = other.buffer_;
    other.buffer_ = mine;
    return *this;
  }
  ~BufferRef();

  Buffer* get() const { return buffer_; }
  Buffer* operator->() const { return buffer_; }
  explicit operator bool() const { return buffer_ != nullptr; }
  Buffer* release() {
    Buffer* mine = buffer_;
    buffer_ = nullptr;
    return mine;
  }

 private:
  Buffer* buffer_ = nullptr;
};

// Host memory, aligned; elements that are objects are made empty. Empty where there is none.
BufferRef new_host_buffer(size_t size, bool has_strings) noexcept;
// How deallocators are called from now on.
void attach_plugin_calls(const mtf_plugin_calls* calls);

// Memory of the device of a place, which gets it back as `owner`.
BufferRef new_device_buffer(void* data, size_t size, void* owner,
                            const mtf_kernel_place* place) noexcept;
// Memory of a plugin's, which `deallocator` gets back.
BufferRef new_plugin_buffer(void* data, size_t size, Deallocator deallocator,
                            void* argument) noexcept;
// Gives a plugin its memory back. What the plugin throws is a misuse: destructors do this.
void give_to_deallocator(Deallocator deallocator, void* data, size_t size, void* argument);
// Memory that Python lends for a call, or longer if it is told so.
BufferRef new_lent_buffer(void* data, size_t size, bool is_on_host) noexcept;

// The numbers of lent memory that is not used any more since the last question; how many of `most`.
int32_t take_released_keepers(uint64_t* numbers, int32_t most) noexcept;
// A number for lent memory that is used after its call.
uint64_t new_keeper() noexcept;

// The memory of tensors without elements: aligned, and nobody's.
void* empty_data() noexcept;

}  // namespace mtf::kernels
