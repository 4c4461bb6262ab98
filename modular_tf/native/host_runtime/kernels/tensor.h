// Tensors: what a handle of a plugin's stands for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "buffer.h"
#include "data_types.h"
#include "handles.h"

namespace mtf::kernels {

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
