// A tensor that the host has lent.
#pragma once

#include <utility>

#include "kernel/shape.h"
#include "modular_tf/tensor.h"

namespace kernel {

// Owns one handle. The elements may be in device memory: the kernel knows. One thread at a time.
class Tensor {
 public:
  explicit Tensor(TF_Tensor* raw) : raw_(raw) {}
  Tensor(Tensor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor() { TF_DeleteTensor(raw_); }

  TF_DataType type() const { return TF_TensorType(raw_); }

  Shape shape() const {
    Shape sizes(static_cast<size_t>(TF_NumDims(raw_)));
    for (size_t at = 0; at < sizes.size(); ++at) sizes[at] = TF_Dim(raw_, static_cast<int>(at));
    return sizes;
  }

  template <class Element>
  Element* data() const {
    return static_cast<Element*>(TF_TensorData(raw_));
  }

 private:
  TF_Tensor* raw_;
};

}  // namespace kernel
