#include "owned_pointer.h"

#include <stdint.h>

static const char kName[] = "modular_tf.owned_pointer";

static void release(PyObject* capsule) {
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
      PyCapsule_SetDestructor(capsule, release) < 0) {
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
