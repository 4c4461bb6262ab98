/* How long the memory of a tensor is kept.
 *
 * Uses of it are counted: managed tensors and buffers of consumers, views, and calls that export or
 * copy. Where Python code may run, or another thread, a use begins before that. `_end_memory` lets the
 * owner go with the last use; a tensor that is not ended keeps it until it is destroyed itself. */
#pragma once

#include "tensor.h"

/* Releases the memory that a tensor has. May be called with an exception pending, which it keeps. */
void mtf_release_memory(Tensor* self);

/* Begins a use, and keeps the tensor. */
static inline void mtf_hold(Tensor* self) {
  Py_INCREF((PyObject*)self);
  ++self->n_exports;
}

static inline void mtf_release_if_unused(Tensor* self) {
  if (self->is_ended && !self->is_lent && self->n_exports == 0) mtf_release_memory(self);
}

/* Ends a use. May be called with an exception pending, which it keeps. */
static inline void mtf_let_go(Tensor* self) {
  --self->n_exports;
  mtf_release_if_unused(self);
  Py_DECREF((PyObject*)self);
}

/* Waits for the work in flight by `_before_export(stream)`. -1 with an exception where that raised, or
 * the memory was ended meanwhile. */
int mtf_wait_for_work(Tensor* self, PyObject* stream);

/* Begins a use once the work in flight is done; -1 with an exception, and no use has begun. */
static inline int mtf_hold_when_done(Tensor* self, PyObject* stream) {
  mtf_hold(self);
  if ((!self->needs_sync && stream == Py_None) || mtf_wait_for_work(self, stream) == 0) return 0;
  mtf_let_go(self);
  return -1;
}

/* The tensor that has the memory, which is never a view; of one that gave it back, itself. Borrowed. */
static inline Tensor* mtf_root(Tensor* self) {
  return self->is_view && self->owner != NULL ? (Tensor*)self->owner : self;
}

/* _end_memory(). */
PyObject* mtf_end_memory(PyObject* self, PyObject* unused);

/* tp_dealloc. */
void mtf_tensor_deallocate(PyObject* self);
