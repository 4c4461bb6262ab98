#include "extents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256 };

enum { MOST_WIDTHS = 4 };

/* The widths of those types that have not any one. Floating point is of IEEE's formats. */
static const uint8_t widths[kDLFloat4_e2m1fn + 1][MOST_WIDTHS] = {
    [kDLFloat] = {16, 32, 64, 128},
    [kDLBfloat] = {16},
    [kDLComplex] = {32, 64, 128},
    [kDLBool] = {8},
    [kDLFloat8_e3m4] = {8},
    [kDLFloat8_e4m3] = {8},
    [kDLFloat8_e4m3b11fnuz] = {8},
    [kDLFloat8_e4m3fn] = {8},
    [kDLFloat8_e4m3fnuz] = {8},
    [kDLFloat8_e5m2] = {8},
    [kDLFloat8_e5m2fnuz] = {8},
    [kDLFloat8_e8m0fnu] = {8},
    [kDLFloat6_e2m3fn] = {6},
    [kDLFloat6_e3m2fn] = {6},
    [kDLFloat4_e2m1fn] = {4},
};

bool mtf_is_dtype(DLDataType dtype) {
  return dtype.code <= kDLFloat4_e2m1fn && dtype.bits > 0 && dtype.lanes > 0;
}

bool mtf_has_its_width(DLDataType dtype) {
  const uint8_t* allowed = widths[dtype.code];
  return allowed[0] == 0 || memchr(allowed, dtype.bits, MOST_WIDTHS) != NULL;
}

void mtf_list_widths(uint8_t code, char* text, size_t room) {
  size_t used = 0;
  text[0] = '\0';
  for (int i = 0; i < MOST_WIDTHS && widths[code][i] != 0 && used < room; ++i) {
    used += (size_t)snprintf(text + used, room - used, i == 0 ? "%d" : " or %d", widths[code][i]);
  }
}

bool mtf_has_extents(const DLTensor* tensor) {
  return tensor->ndim == 0 ||
         (tensor->ndim > 0 && tensor->ndim <= MTF_MAX_NDIM && tensor->shape != NULL);
}

/* Padding gives each lane bytes of its own. */
int64_t mtf_item_size(DLDataType dtype, uint64_t flags) {
  const int64_t bits = (int64_t)dtype.bits * dtype.lanes;
  if ((flags & MTF_PADDED) != 0) {
    return (dtype.bits + 7) / 8 * (int64_t)dtype.lanes;
  }
  return bits % 8 == 0 ? bits / 8 : 0;
}

/* What strides are multiplied by: the bytes of an element, or its bits where elements share bytes. */
static int64_t unit_of(DLDataType dtype, uint64_t flags) {
  const int64_t item = mtf_item_size(dtype, flags);
  return item != 0 ? item : (int64_t)dtype.bits * dtype.lanes;
}

static bool elements_of(const DLTensor* tensor, int64_t* size) {
  bool is_empty = false, is_within_bounds = true;
  *size = 1;
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    if (tensor->shape[i] < 0) return false;
    is_empty |= tensor->shape[i] == 0;
    is_within_bounds &= mtf_multiply_add(*size, tensor->shape[i], 0, size);
  }
  if (is_empty) *size = 0;
  return is_empty || is_within_bounds;
}

bool mtf_count(const DLTensor* tensor, uint64_t flags, int64_t* size, int64_t* n_bytes) {
  const int64_t unit = unit_of(tensor->dtype, flags);
  if (!elements_of(tensor, size)) return false;
  if (mtf_item_size(tensor->dtype, flags) != 0) return mtf_multiply_add(*size, unit, 0, n_bytes);
  if (!mtf_multiply_add(*size, unit, 7, n_bytes)) return false;
  *n_bytes /= 8;
  return true;
}

void mtf_compact_strides(int32_t ndim, const int64_t* shape, int64_t* strides) {
  int64_t stride = 1;
  for (int32_t i = ndim; i-- > 0;) {
    strides[i] = stride;
    /* Of an empty tensor no stride is ever used, and a product may overflow. */
    if (shape[i] > 0 && !mtf_multiply_add(stride, shape[i], 0, &stride)) stride = 0;
  }
}

static bool is_within_memory(const DLTensor* tensor, int64_t first, int64_t end) {
  uintptr_t address = 0;
  const uintptr_t data = (uintptr_t)tensor->data;
  return !__builtin_add_overflow(data, first, &address) &&
         !__builtin_add_overflow(data, end, &address);
}

/* Tells of nearly all tensors, by few multiplications, that no stride leads far: none is negative,
 * and as many steps as there are elements end within memory, each as long as all strides together. */
static bool is_surely_within_memory(const DLTensor* tensor, int64_t size, int64_t unit) {
  int64_t step = 0, end = 0;
  for (int32_t i = 0; i < tensor->ndim; ++i) step |= tensor->strides[i];
  return step >= 0 && size > 0 && mtf_multiply_add(step, unit, 0, &step) &&
         mtf_multiply_add(size, step, unit, &end) && is_within_memory(tensor, 0, end);
}

bool mtf_fit_strides(DLTensor* tensor, int64_t size, uint64_t flags, bool is_address) {
  const int64_t unit = unit_of(tensor->dtype, flags);
  if (is_surely_within_memory(tensor, size, unit)) return true;
  int64_t lowest = 0, highest = unit, step = 0;
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    const bool fits = mtf_multiply_add(tensor->strides[i], unit, 0, &step);
    if (size == 0 || tensor->shape[i] == 1) {
      if (!fits) tensor->strides[i] = 0;
      continue;
    }
    int64_t* end = step < 0 ? &lowest : &highest;
    if (!fits || !mtf_multiply_add(tensor->shape[i] - 1, step, *end, end)) return false;
  }
  if (!is_address || size == 0) return true;
  if (mtf_item_size(tensor->dtype, flags) != 0) return is_within_memory(tensor, lowest, highest);
  return is_within_memory(tensor, lowest / 8, highest / 8);
}

static bool is_empty(const DLTensor* tensor) {
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    if (tensor->shape[i] == 0) return true;
  }
  return false;
}

/* A dimension of one element may have any stride. */
static bool follows(const DLTensor* tensor, int32_t i, int64_t* expected) {
  if (tensor->shape[i] != 1 && tensor->strides[i] != *expected) return false;
  *expected *= tensor->shape[i]; /* at most the number of elements, which was counted */
  return true;
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
