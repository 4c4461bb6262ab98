#include "lifetime.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
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

/* -- the interpreter's end -- */

static atomic_bool is_noted;
static pthread_t finalising; /* written before is_noted */

/* Python counts as not initialised while its modules are cleared, which destroys most objects. Its
 * thread states go last. */
bool mtf_can_take_gil(void) {
  if (Py_IsInitialized()) return true;
  return atomic_load(&is_noted) && pthread_equal(pthread_self(), finalising) &&
         PyGILState_GetThisThreadState() != NULL;
}

PyObject* mtf_note_interpreter_ends(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  finalising = pthread_self();
  atomic_store(&is_noted, true);
  Py_RETURN_NONE;
}

/* -- owners of C memory -- */

static const char kName[] = "modular_tf.owned_pointer";

static void free_pointer(PyObject* capsule) {
  void (*const free_it)(void*) = (void (*)(void*))(uintptr_t)PyCapsule_GetContext(capsule);
  void* const pointer = PyCapsule_GetPointer(capsule, kName);
  Py_BEGIN_ALLOW_THREADS
  free_it(pointer);
  Py_END_ALLOW_THREADS
}

PyObject* mtf_own(void* pointer, void (*free_it)(void*)) {
  /* The destructor comes last: it must not run without the function. */
  PyObject* capsule = PyCapsule_New(pointer, kName, NULL);
  if (capsule == NULL) return NULL;
  if (PyCapsule_SetContext(capsule, (void*)(uintptr_t)free_it) < 0 ||
      PyCapsule_SetDestructor(capsule, free_pointer) < 0) {
    Py_DECREF(capsule);
    return NULL;
  }
  return capsule;
}

PyObject* mtf_owned_pointer(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
  (void)module;
  if (count != 2) {
    PyErr_Format(PyExc_TypeError, "owned_pointer() takes 2 arguments, found %zd", count);
    return NULL;
  }
  void* const pointer = PyLong_AsVoidPtr(arguments[0]);
  void* const free_it = PyErr_Occurred() ? NULL : PyLong_AsVoidPtr(arguments[1]);
  if (PyErr_Occurred()) return NULL;
  return mtf_own(pointer, (void (*)(void*))(uintptr_t)free_it);
}
