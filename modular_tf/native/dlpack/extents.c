#include "extents.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256 };

int64_t mtf_item_size(DLDataType dtype, uint64_t flags) {
  const int64_t bits = (int64_t)dtype.bits * dtype.lanes;
  if ((flags & DLPACK_FLAG_SUBBYTE_PADDED) != 0) return (dtype.bits + 7) / 8 * (int64_t)dtype.lanes;
  return bits % 8 == 0 ? bits / 8 : 0;
}

static bool bytes_of(int64_t size, DLDataType dtype, uint64_t flags, int64_t* n_bytes) {
  const int64_t item = mtf_item_size(dtype, flags);
  if (item != 0) return !__builtin_mul_overflow(size, item, n_bytes);
  if (__builtin_mul_overflow(size, (int64_t)dtype.bits * dtype.lanes, n_bytes)) return false;
  *n_bytes = *n_bytes / 8 + (*n_bytes % 8 != 0);
  return true;
}

bool mtf_count(const DLTensor* tensor, uint64_t flags, int64_t* size, int64_t* n_bytes) {
  int64_t product = 1;
  bool is_empty = false;
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    if (tensor->shape[i] < 0) return false;
    if (tensor->shape[i] == 0) is_empty = true;
  }
  for (int32_t i = 0; i < tensor->ndim && !is_empty; ++i) {
    if (__builtin_mul_overflow(product, tensor->shape[i], &product)) return false;
  }
  *size = is_empty ? 0 : product;
  return bytes_of(*size, tensor->dtype, flags, n_bytes);
}

void mtf_compact_strides(int32_t ndim, const int64_t* shape, int64_t* strides) {
  int64_t stride = 1;
  for (int32_t i = ndim; i-- > 0;) {
    strides[i] = stride;
    /* Of an empty tensor no stride is ever used, and a product may overflow. */
    if (shape[i] > 0 && __builtin_mul_overflow(stride, shape[i], &stride)) stride = 0;
  }
}

/* A dimension of one element may have any stride. */
static bool follows(const DLTensor* tensor, int32_t i, int64_t* expected) {
  if (tensor->shape[i] != 1 && tensor->strides[i] != *expected) return false;
  *expected *= tensor->shape[i];
  return true;
}

static bool is_empty(const DLTensor* tensor) {
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    if (tensor->shape[i] == 0) return true;
  }
  return false;
}

bool mtf_is_c_contiguous(const DLTensor* tensor) {
  int64_t expected = 1;
  if (is_empty(tensor)) return true;
  for (int32_t i = tensor->ndim; i-- > 0;) {
    if (!follows(tensor, i, &expected)) return false;
  }
  return true;
}

bool mtf_is_f_contiguous(const DLTensor* tensor) {
  int64_t expected = 1;
  if (is_empty(tensor)) return true;
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    if (!follows(tensor, i, &expected)) return false;
  }
  return true;
}

bool mtf_has_negative_stride(const DLTensor* tensor) {
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    if (tensor->strides[i] < 0 && tensor->shape[i] > 1) return !is_empty(tensor);
  }
  return false;
}

/* Copies dimension `axis` and those after it; returns where the next element goes. */
static char* copy_from_axis(const DLTensor* tensor, size_t item_size, int32_t axis,
                            const char* from, char* to) {
  if (axis == tensor->ndim) {
    memcpy(to, from, item_size);
    return to + item_size;
  }
  const int64_t count = tensor->shape[axis];
  const ptrdiff_t step = (ptrdiff_t)tensor->strides[axis] * (ptrdiff_t)item_size;
  if (axis == tensor->ndim - 1 && tensor->strides[axis] == 1) {
    memcpy(to, from, (size_t)count * item_size);
    return to + (size_t)count * item_size;
  }
  for (int64_t i = 0; i < count; ++i) {
    to = copy_from_axis(tensor, item_size, axis + 1, from + i * step, to);
  }
  return to;
}

void mtf_copy_elements(const DLTensor* from, size_t item_size, char* to) {
  if (!is_empty(from)) copy_from_axis(from, item_size, 0, from->data, to);
}

void* mtf_aligned_memory(int64_t n_bytes) {
  void* memory = NULL;
  const size_t size = n_bytes == 0 ? 1 : (size_t)n_bytes;
  return posix_memalign(&memory, ALIGNMENT, size) == 0 ? memory : NULL;
}
