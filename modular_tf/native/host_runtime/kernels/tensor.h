// Tensors: what a handle of a plugin's stands for.
#pragma once

#include "buffer.h"
#include "data_types.h"
#include "dims.h"
#include "handles.h"

namespace mtf::kernels {

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
