#include "lifetime.h"

#include <stdlib.h>

/* How many tensors a thread destroys one inside of the other, where one keeps the next. */
enum { MOST_NESTED = 16 };

typedef struct {
  int depth;
  Tensor* postponed; /* linked by dl.data, which is not used any more */
} Nesting;

static _Thread_local Nesting nesting;

/* Runs code of the producer's, or of the owner's class. */
void mtf_release_memory(Tensor* self) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  void* managed = self->managed;
  PyObject* owner = self->owner;
  self->managed = NULL;
  self->owner = NULL;
  if (managed != NULL) self->release(managed);
  if (owner != NULL && self->is_view) mtf_let_go((Tensor*)owner);
  if (owner != NULL && !self->is_view) Py_DECREF(owner);
  PyErr_Restore(type, value, traceback);
}

int mtf_wait_for_work(Tensor* self, PyObject* stream) {
  PyObject* asked = (PyObject*)(self->needs_sync ? mtf_root(self) : self);
  PyObject* done = PyObject_CallMethod(asked, "_before_export", "(O)", stream);
  if (done == NULL) return -1;
  Py_DECREF(done);
  if (!self->is_ended) return 0;
  PyErr_SetString(PyExc_BufferError, "the tensor's memory was given back");
  return -1;
}

PyObject* mtf_end_memory(PyObject* object, PyObject* unused) {
  (void)unused;
  Tensor* self = (Tensor*)object;
  self->is_ended = true;
  self->needs_sync = true; /* every export asks `_before_export`, which refuses by its own error */
  mtf_release_if_unused(self);
  Py_RETURN_NONE;
}

static void destroy(Tensor* self) {
  PyTypeObject* type = Py_TYPE((PyObject*)self);
  mtf_release_memory(self);
  free(self->extents_on_heap);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

static Tensor* take_postponed(Nesting* here) {
  Tensor* next = here->postponed;
  if (next != NULL) here->postponed = next->dl.data;
  return next;
}

/* Chains of tensors and of other libraries' arrays may be of any length; the stack is not. */
void mtf_tensor_deallocate(PyObject* object) {
  Nesting* here = &nesting;
  Tensor* self = (Tensor*)object;
  PyObject_GC_UnTrack(object);
  if (here->depth == MOST_NESTED) {
    self->dl.data = here->postponed;
    here->postponed = self;
    return;
  }
  ++here->depth;
  destroy(self);
  while (here->depth == 1 && (self = take_postponed(here)) != NULL) destroy(self);
  --here->depth;
}
