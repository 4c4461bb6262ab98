/* Shapes and strides: sizes without overflow, compactness, and copies to compact order. No Python. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modular_tf/dlpack.h"

/* Flags, by shorter names. */
#define MTF_READ_ONLY DLPACK_FLAG_BITMASK_READ_ONLY
#define MTF_IS_COPIED DLPACK_FLAG_BITMASK_IS_COPIED
#define MTF_PADDED DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED

enum { MTF_MAX_NDIM = 64 }; /* numpy's and memoryview's limit too */

/* *result = a * b + c; false, and no result of use, where that is not within 64 bits. */
static inline bool mtf_multiply_add(int64_t a, int64_t b, int64_t c, int64_t* result) {
  int64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(product, c, result);
}

/* Whether DLPack has such a data type, of whatever width. */
bool mtf_is_dtype(DLDataType dtype);

/* Whether a data type that DLPack has is of a width that it may have: many have one only. */
bool mtf_has_its_width(DLDataType dtype);

/* Writes the widths that a type code may have, "16 or 32"; nothing where it may have any. */
void mtf_list_widths(uint8_t code, char* text, size_t room);

/* Whether there are at most MTF_MAX_NDIM dimensions, and a shape where there is one. */
bool mtf_has_extents(const DLTensor* tensor);

/* Bytes of one element; 0 where several elements share one (packed sub-byte types). */
int64_t mtf_item_size(DLDataType dtype, uint64_t flags);

/* Elements, and the bytes of so many without gaps: the only formula for them. False: the shape is
 * negative somewhere, or a number is over 2^63. */
bool mtf_count(const DLTensor* tensor, uint64_t flags, int64_t* size, int64_t* n_bytes);

/* C order, in elements. */
void mtf_compact_strides(int32_t ndim, const int64_t* shape, int64_t* strides);

/* Whether all elements have an offset from `data` within 64 bits and, where `data` is an address of
 * the host's, an address. Strides that lead nowhere become 0 if their bytes are not within 64 bits.
 * `size` is how many elements there are. */
bool mtf_fit_strides(DLTensor* tensor, int64_t size, uint64_t flags, bool is_address);

/* Whether the elements lie without gaps in C order, or in Fortran order. */
bool mtf_is_c_contiguous(const DLTensor* tensor);
bool mtf_is_f_contiguous(const DLTensor* tensor);

/* Whether an index that grows anywhere moves back in memory. */
bool mtf_has_negative_stride(const DLTensor* tensor);

/* Copies the elements, of `item_size` bytes each, to `to` in C order. */
void mtf_copy_elements(const DLTensor* from, size_t item_size, char* to);

/* Memory with DLPack's alignment of 256 bytes, for free(); NULL: there is none. */
void* mtf_aligned_memory(int64_t n_bytes);
