#include "host_copy.h"

#include <stdlib.h>
#include <string.h>

#include "lifetime.h"
#include "packing.h"

/* Without the GIL. */
static void copy_bytes(const Tensor* self, bool is_other_layout, char* to) {
  const int64_t item = mtf_item_size(self->dl.dtype, self->flags);
  const bool is_padded = (self->flags & MTF_PADDED) != 0;
  if (is_other_layout && is_padded) {
    mtf_pack(self->dl.dtype, self->size, self->dl.data, (uint8_t*)to);
  } else if (is_other_layout) {
    mtf_unpack(self->dl.dtype, self->size, self->dl.data, (uint8_t*)to);
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
                               mtf_has_two_layouts(self->dl.dtype);
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
