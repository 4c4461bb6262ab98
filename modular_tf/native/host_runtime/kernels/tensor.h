// Tensors: what a handle of a plugin's stands for; element types, and the memory that tensors share.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "handles.h"
#include "host_table.h"

namespace mtf::kernels {

struct DataTypeFacts {
  int32_t number;  // TF_DataType
  const char* name;
  size_t size;  // bytes of an element; 0: elements have no fixed size
};

// NULL for numbers that no type has, and for reference types.
const DataTypeFacts* find_data_type(int32_t number) noexcept;

constexpr int32_t kFirstReference = 100;

inline bool is_reference(int32_t type) { return type > kFirstReference; }
inline int32_t without_reference(int32_t type) {
  return is_reference(type) ? type - kFirstReference : type;
}
// Whether elements are objects of the host's, which have to be made and ended.
inline bool is_object(int32_t type) {
  return type == TF_STRING || type == TF_RESOURCE || type == TF_VARIANT;
}
// Bytes that an element takes in memory, objects included; 0 for no type.
size_t element_size(int32_t type) noexcept;
// As "float"; "type 77" for an unknown number lies in a buffer of the thread's.
const char* type_name(int32_t type) noexcept;

// Memory that tensors share, and who gets it back at the end.

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
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~BufferRef();

  Buffer* get() const { return buffer_; }
  Buffer* operator->() const { return buffer_; }
  explicit operator bool() const { return buffer_ != nullptr; }
  Buffer* release() { return std::exchange(buffer_, nullptr); }

 private:
  Buffer* buffer_ = nullptr;
};

// How deallocators are called from now on.
void attach_plugin_calls(const mtf_plugin_calls* calls);

// Memory of the device of a place, which gets it back as `owner`.
BufferRef new_device_buffer(void* data, size_t size, void* owner,
                            const mtf_kernel_place* place) noexcept;
// Memory that Python lends for a call, or longer if it is told so.
BufferRef new_lent_buffer(void* data, size_t size, bool is_on_host) noexcept;

// The numbers of lent memory that is not used any more since the last question; how many of `most`.
int32_t take_released_keepers(uint64_t* numbers, int32_t most) noexcept;
// A number for lent memory that is used after its call.
uint64_t new_keeper() noexcept;

// The memory of tensors without elements: aligned, and nobody's.
void* empty_data() noexcept;

// Tensors: what a handle of a plugin's stands for.

// Dimensions of tensors: few, most of the time, so that they need no memory of their own.
class Dims {
 public:
  Dims() = default;
  Dims(const int64_t* sizes, int rank) { assign(sizes, rank); }
  Dims(const Dims& other) { assign(other.data(), other.rank_); }
  Dims(Dims&& other) noexcept = default;
  Dims& operator=(const Dims& other) {
    if (this != &other) assign(other.data(), other.rank_);
    return *this;
  }
  Dims& operator=(Dims&& other) noexcept = default;

  void assign(const int64_t* sizes, int rank) {
    if (rank < 0 || rank > kMost || (rank > 0 && sizes == nullptr)) refuse(sizes, rank);
    if (rank > kInline) more_.reset(new int64_t[static_cast<size_t>(rank)]);
    rank_ = rank;
    if (rank > 0) std::copy(sizes, sizes + rank, rank > kInline ? more_.get() : few_);
  }
  int rank() const { return rank_; }
  const int64_t* data() const { return rank_ > kInline ? more_.get() : few_; }
  int64_t operator[](int index) const { return data()[index]; }
  bool operator==(const Dims& other) const {
    return rank_ == other.rank_ && std::equal(data(), data() + rank_, other.data());
  }
  // -1: a size is negative, or there are more than an int64_t counts.
  int64_t elements() const {
    int64_t count = 1;
    for (int index = 0; index < rank_; ++index) {
      const int64_t size = (*this)[index];
      if (size < 0 || __builtin_mul_overflow(count, size, &count)) return -1;
    }
    return count;
  }
  bool has_negative() const {
    return std::any_of(data(), data() + rank_, [](int64_t size) { return size < 0; });
  }
  // As "[2,3]".
  std::string text() const {
    std::string text = "[";
    for (int index = 0; index < rank_; ++index) {
      if (index > 0) text += ',';
      text += std::to_string((*this)[index]);
    }
    return text + "]";
  }

 private:
  static constexpr int kMost = 254;  // as TensorFlow has it
  [[noreturn]] static void refuse(const int64_t* sizes, int rank) {
    const std::string what = sizes == nullptr ? "NULL for " : "";
    throw std::length_error("dims: expected 0 to " + std::to_string(kMost) + " sizes, found " + what +
                            std::to_string(rank));
  }

  static constexpr int kInline = 6;
  int rank_ = 0;
  int64_t few_[kInline] = {};
  std::unique_ptr<int64_t[]> more_;
};

// A typed view of a buffer.
struct Tensor {
  BufferRef buffer;  // empty: there are no elements
  int32_t type = 0;
  Dims dims;

  void* data() const { return buffer ? buffer->data : empty_data(); }
  size_t size() const { return buffer ? buffer->size : 0; }
};

// Bytes of elements; false where they are negative in a dimension, or too many.
bool size_of(const Dims& dims, int32_t type, size_t* size);
// A new handle, of the caller's; NULL where there is no memory.
TF_Tensor* new_tensor_handle(Tensor tensor) noexcept;
inline Tensor* tensor_of(const TF_Tensor* handle, const char* function) noexcept {
  return checked<Tensor>(handle, HandleKind::kTensor, function);
}
// Host memory for a tensor; empty elements need none. False where there is no memory.
bool allocate_on_host(Tensor* tensor, size_t size) noexcept;

}  // namespace mtf::kernels
