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

PyObject* mtf_owned_pointer(PyObject* module, PyObject* arguments) {
  (void)module;
  unsigned long long pointer, free_it;
  if (!PyArg_ParseTuple(arguments, "KK:owned_pointer", &pointer, &free_it)) return NULL;
  /* The destructor comes last: it must not run without the function. */
  PyObject* capsule = PyCapsule_New((void*)(uintptr_t)pointer, kName, NULL);
  if (capsule == NULL) return NULL;
  if (PyCapsule_SetContext(capsule, (void*)(uintptr_t)free_it) < 0 ||
      PyCapsule_SetDestructor(capsule, release) < 0) {
    Py_DECREF(capsule);
    return NULL;
  }
  return capsule;
}
