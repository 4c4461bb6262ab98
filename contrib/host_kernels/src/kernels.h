// What the kernels share, and how they are registered.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/execution.h"
#include "kernel/shape.h"

namespace host_kernels {

// Each registers kernels of one operation for each of its element types, and throws kernel::Failed.
void register_add(const char* device_type);         // Add, AddV2: with broadcasting
void register_cast(const char* device_type);        // Cast
void register_matmul(const char* device_type);      // MatMul
void register_reductions(const char* device_type);  // Max, Sum
void register_relu(const char* device_type);        // Relu

// The kernels compute on the thread that calls them. Returns when the inputs can be read, that is when
// the stream has done what it holds; without a stream they can be read at once. Throws kernel::Failed
// where the device is not host_device.
void await_inputs(const kernel::Execution& execution);

// -- walking through arrays that differ in shape: what is broadcast or reduced has stride 0 --

using Strides = std::vector<int64_t>;  // in elements, one for each dimension that is walked through

// Of an array in C order.
Strides strides_of(const kernel::Shape& shape);

// The shape that two arrays have together, aligned at the last dimension; sizes of 1 adapt. Throws
// kernel::Failed, with the name of the operation, where they do not fit.
kernel::Shape broadcast_shape(const char* op, const kernel::Shape& left, const kernel::Shape& right);

// Of an array of `shape` that is broadcast to `wide`.
Strides broadcast_strides(const kernel::Shape& shape, const kernel::Shape& wide);

// Calls `row(offsets, steps, count)` for each row of `shape`: `count` elements that are `steps[i]` apart
// in array i, from `offsets[i]` on.
template <size_t N, class Row>
void for_each_row(const kernel::Shape& shape, const std::array<Strides, N>& strides, Row&& row) {
  if (kernel::n_elements(shape) == 0) return;
  std::array<int64_t, N> offsets{};
  std::array<int64_t, N> steps{};
  if (shape.empty()) return row(offsets, steps, int64_t{1});
  const size_t last = shape.size() - 1;
  for (size_t each = 0; each < N; ++each) steps[each] = strides[each][last];
  kernel::Shape at(shape.size(), 0);
  while (true) {
    row(offsets, steps, shape[last]);
    size_t dimension = last;
    while (dimension-- > 0) {
      for (size_t each = 0; each < N; ++each) offsets[each] += strides[each][dimension];
      if (++at[dimension] < shape[dimension]) break;
      for (size_t each = 0; each < N; ++each) {
        offsets[each] -= strides[each][dimension] * shape[dimension];
      }
      at[dimension] = 0;
    }
    if (dimension == SIZE_MAX) return;  // the first dimension has come to its end
  }
}

}  // namespace host_kernels
