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

/* -- whether what may be called on any thread and at any time, as a deleter, can still reach Python -- */

/* Whether PyGILState_Ensure returns on this thread. While Python finalises it does on the thread that
 * finalises, and ends or blocks every other one; afterwards there is nothing to take.
 *
 * A thread that asks while the interpreter runs, and is overtaken by its end before it has the GIL, is
 * ended or blocked by Python: the stable ABI has no means against that. */
bool mtf_can_take_gil(void);

/* note_interpreter_ends(): for atexit, which calls it on the thread that finalises. */
PyObject* mtf_note_interpreter_ends(PyObject* module, PyObject* unused);

/* -- the owner of C memory: a capsule, which the collector neither finalizes nor clears.
 *
 * Finalizers of a cycle run in any order. A stream's may write what it has buffered after that of a
 * cffi pointer (`ffi.gc`) has freed the file. A capsule is freed when all finalizers have run -- */

/* A capsule whose end calls the function, without the GIL. NULL with an exception, and then nothing is
 * taken over. */
PyObject* mtf_own(void* pointer, void (*free_it)(void*));

/* owned_pointer(address, free_address): such a capsule. */
PyObject* mtf_owned_pointer(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
