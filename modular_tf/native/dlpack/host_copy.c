#include "host_copy.h"

#include <stdlib.h>
#include <string.h>

#include "lifetime.h"

/* -- elements of less than a byte: packed, as DLPack has them, and padded to whole bytes -- */

/* Bits on their way from one layout to the other, the next one lowest. */
typedef struct {
  unsigned bits;
  int count;
} Bits;

static unsigned mask_of(int width) { return (1U << width) - 1; }

/* A lane is whole bytes and, in its last byte, the bits that are left. */
static int bytes_of_lane(DLDataType dtype) { return (dtype.bits + 7) / 8; }

static int width_of_byte(DLDataType dtype, int byte) {
  return byte < dtype.bits / 8 ? 8 : dtype.bits % 8;
}

/* Whether padding changes how elements lie. */
static bool has_two_layouts(DLDataType dtype) { return dtype.bits % 8 != 0; }

static const uint8_t* read_bits(Bits* bits, int width, const uint8_t* packed) {
  if (bits->count >= width) return packed;
  bits->bits |= (unsigned)*packed << bits->count;
  bits->count += 8;
  return packed + 1;
}

static void drop_bits(Bits* bits, int width) {
  bits->bits >>= width;
  bits->count -= width;
}

/* Copies `size` elements from packed to padded, or back. Packed, the first lane of the first element
 * is in the lowest bits of the first byte; padded, each lane starts at a byte, and the bits above it
 * are written as 0 and read as nothing. Neither has gaps, and `to` has room for all. */
static void unpack(DLDataType dtype, int64_t size, const uint8_t* packed, uint8_t* to) {
  Bits bits = {0, 0};
  for (int64_t lane = 0; lane < size * dtype.lanes; ++lane) {
    for (int byte = 0; byte < bytes_of_lane(dtype); ++byte) {
      const int width = width_of_byte(dtype, byte);
      packed = read_bits(&bits, width, packed);
      *to++ = (uint8_t)(bits.bits & mask_of(width));
      drop_bits(&bits, width);
    }
  }
}

static void pack(DLDataType dtype, int64_t size, const uint8_t* padded, uint8_t* to) {
  Bits bits = {0, 0};
  for (int64_t lane = 0; lane < size * dtype.lanes; ++lane) {
    for (int byte = 0; byte < bytes_of_lane(dtype); ++byte) {
      const int width = width_of_byte(dtype, byte);
      bits.bits |= (*padded++ & mask_of(width)) << bits.count;
      bits.count += width;
      if (bits.count >= 8) {
        *to++ = (uint8_t)bits.bits;
        drop_bits(&bits, 8);
      }
    }
  }
  if (bits.count > 0) *to = (uint8_t)bits.bits;
}

/* -- copies -- */

/* Without the GIL. */
static void copy_bytes(const Tensor* self, bool is_other_layout, char* to) {
  const int64_t item = mtf_item_size(self->dl.dtype, self->flags);
  const bool is_padded = (self->flags & MTF_PADDED) != 0;
  if (is_other_layout && is_padded) {
    pack(self->dl.dtype, self->size, self->dl.data, (uint8_t*)to);
  } else if (is_other_layout) {
    unpack(self->dl.dtype, self->size, self->dl.data, (uint8_t*)to);
  } else if (item != 0) {
    mtf_copy_elements(&self->dl, (size_t)item, to);
  } else if (self->n_bytes > 0) {
    memcpy(to, self->dl.data, (size_t)self->n_bytes);
  }
}

/* Bits are copied, packed and unpacked only as they lie. */
static int check_compact(const Tensor* self, bool is_other_layout) {
  const bool is_by_bits = is_other_layout || mtf_item_size(self->dl.dtype, self->flags) == 0;
  if (!is_by_bits || mtf_is_c_contiguous(&self->dl)) return 0;
  PyErr_SetString(PyExc_BufferError,
                  "elements that share bytes can be copied only where they are compact");
  return -1;
}

/* New memory for a copy, described; its bytes are still to be written. */
static Tensor* new_host_tensor(const Tensor* self, uint64_t padded) {
  Tensor* copy = mtf_tensor_new();
  if (copy == NULL) return NULL;
  DLTensor dl = self->dl;
  int64_t size = 0, n_bytes = 0;
  dl.strides = NULL;
  dl.device = (DLDevice){kDLCPU, 0};
  const bool is_countable = mtf_count(&dl, padded, &size, &n_bytes);
  dl.data = is_countable ? mtf_aligned_memory(n_bytes) : NULL;
  copy->managed = dl.data;
  copy->release = free;
  if (dl.data == NULL) PyErr_NoMemory();
  if (dl.data == NULL ||
      mtf_tensor_describe(copy, &dl, padded | MTF_IS_COPIED, PyExc_BufferError) < 0) {
    Py_DECREF((PyObject*)copy);
    return NULL;
  }
  return copy;
}

Tensor* mtf_tensor_host_copy(Tensor* self, uint64_t padded) {
  const bool is_other_layout = padded != (self->flags & MTF_PADDED) &&
                               has_two_layouts(self->dl.dtype);
  if (check_compact(self, is_other_layout) < 0) return NULL;
  Tensor* copy = new_host_tensor(self, padded);
  if (copy == NULL) return NULL;
  PyThreadState* thread = PyEval_SaveThread();
  copy_bytes(self, is_other_layout, copy->managed);
  PyEval_RestoreThread(thread);
  return copy;
}

PyObject* mtf_repacked(PyObject* module, PyObject* arguments) {
  (void)module;
  PyObject* object = NULL;
  int is_padded = 0;
  if (!PyArg_ParseTuple(arguments, "Op:repacked", &object, &is_padded)) return NULL;
  Tensor* self = mtf_tensor_from(object);
  if (self == NULL || mtf_hold_when_done(self, Py_None) < 0) return NULL;
  Tensor* copy = NULL;
  if (mtf_is_host_readable(self->dl.device)) {
    copy = mtf_tensor_host_copy(self, is_padded ? MTF_PADDED : 0);
  } else {
    PyErr_SetString(PyExc_BufferError, "only host memory can be packed or unpacked");
  }
  mtf_let_go(self);
  return (PyObject*)copy;
}
