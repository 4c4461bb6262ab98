#include "buffer_view.h"

#include <stdlib.h>

#include "lifetime.h"

/* PyBUF_*, as Python 3.11 froze them. */
enum {
  WRITABLE = 0x1,
  FORMAT = 0x4,
  ND = 0x8,
  STRIDES = 0x10 | ND,
  C_CONTIGUOUS = 0x20 | STRIDES,
  F_CONTIGUOUS = 0x40 | STRIDES,
  ANY_CONTIGUOUS = 0x80 | STRIDES
};

/* struct's names, by numpy's choice among names of one size. */
static const struct {
  DLDataType dtype;
  const char* format;
} formats[] = {
    {{kDLBool, 8, 1}, "?"},     {{kDLInt, 8, 1}, "b"},       {{kDLInt, 16, 1}, "h"},
    {{kDLInt, 32, 1}, "i"},     {{kDLInt, 64, 1}, "l"},      {{kDLUInt, 8, 1}, "B"},
    {{kDLUInt, 16, 1}, "H"},    {{kDLUInt, 32, 1}, "I"},     {{kDLUInt, 64, 1}, "L"},
    {{kDLFloat, 16, 1}, "e"},   {{kDLFloat, 32, 1}, "f"},    {{kDLFloat, 64, 1}, "d"},
    {{kDLComplex, 64, 1}, "Zf"}, {{kDLComplex, 128, 1}, "Zd"},
};
_Static_assert(sizeof(long) == sizeof(int64_t) && sizeof(Py_ssize_t) == sizeof(int64_t),
               "formats and shapes are those of LP64");

static const char* format_of(DLDataType dtype) {
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; ++i) {
    const DLDataType known = formats[i].dtype;
    if (known.code == dtype.code && known.bits == dtype.bits && known.lanes == dtype.lanes) {
      return formats[i].format;
    }
  }
  return NULL;
}

static bool asks(int flags, int what) { return (flags & what) == what; }

static bool is_layout_served(const DLTensor* dl, int flags) {
  if (asks(flags, C_CONTIGUOUS) || !asks(flags, STRIDES)) return mtf_is_c_contiguous(dl);
  if (asks(flags, F_CONTIGUOUS)) return mtf_is_f_contiguous(dl);
  if (asks(flags, ANY_CONTIGUOUS)) return mtf_is_c_contiguous(dl) || mtf_is_f_contiguous(dl);
  return true;
}

static int refuse(const char* why) {
  PyErr_SetString(PyExc_BufferError, why);
  return -1;
}

static int check(const Tensor* self, int flags) {
  const bool is_read_only =
      self->is_mutability_unknown || (self->flags & MTF_READ_ONLY) != 0;
  if (!mtf_is_host_readable(self->dl.device)) return refuse("the memory is not the host's");
  if (is_read_only && asks(flags, WRITABLE)) return refuse("the memory is read-only");
  if (format_of(self->dl.dtype) == NULL) {
    return refuse("Python's buffers have no format for such elements; use DLPack");
  }
  return is_layout_served(&self->dl, flags) ? 0 : refuse("the memory is not contiguous as asked");
}

/* Strides in bytes, for free(); the memory that they are in is the view's `internal`. */
static int add_strides(const Tensor* self, BufferView* view) {
  if (self->dl.ndim == 0) return 0;
  view->internal = view->strides = malloc((size_t)self->dl.ndim * sizeof(Py_ssize_t));
  if (view->strides == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  for (int32_t i = 0; i < self->dl.ndim; ++i) {
    view->strides[i] = self->dl.strides[i] * view->itemsize;
  }
  return 0;
}

static int fill(Tensor* self, BufferView* view, int flags) {
  *view = (BufferView){0};
  view->buf = self->dl.data;
  view->len = self->n_bytes;
  view->itemsize = mtf_item_size(self->dl.dtype, self->flags);
  view->readonly = self->is_mutability_unknown || (self->flags & MTF_READ_ONLY) != 0;
  view->ndim = asks(flags, ND) ? self->dl.ndim : 1;
  if (asks(flags, FORMAT)) view->format = (char*)format_of(self->dl.dtype);
  if (asks(flags, ND)) view->shape = (Py_ssize_t*)self->dl.shape;
  return asks(flags, STRIDES) ? add_strides(self, view) : 0;
}

int mtf_get_buffer(PyObject* object, BufferView* view, int flags) {
  static char nothing; /* of an empty tensor: views want an address */
  Tensor* self = mtf_tensor_from(object);
  view->obj = NULL;
  if (self == NULL || check(self, flags) < 0 || mtf_hold_when_done(self, Py_None) < 0) return -1;
  if (fill(self, view, flags) < 0) {
    mtf_let_go(self);
    return -1;
  }
  if (view->buf == NULL) view->buf = &nothing;
  Py_INCREF(object);
  view->obj = object;
  return 0;
}

void mtf_release_buffer(PyObject* self, BufferView* view) {
  free(view->internal);
  mtf_let_go((Tensor*)self);
}
