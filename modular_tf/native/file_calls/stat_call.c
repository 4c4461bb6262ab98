#include "stat_call.h"

#include <stdint.h>

/* The layout of TF_FileStatistics. The last member is a bool in C: what a plugin writes there may be
 * none, which must not be read as one. */
typedef struct {
  int64_t length;
  int64_t mtime_nsec;
  unsigned char is_directory;
} Statistics;

typedef struct mtf_filesystem mtf_filesystem;
typedef struct mtf_error mtf_error;
typedef mtf_error* (*StatPath)(mtf_filesystem* filesystem, const char* path, char* result);

/* The items are made first: the collector sees no tuple with holes. */
static PyObject* tuple_of(PyTypeObject* type, const Statistics* found) {
  PyObject* const items[] = {PyLong_FromLongLong(found->length),
                             PyLong_FromLongLong(found->mtime_nsec),
                             PyBool_FromLong(found->is_directory != 0)};
  PyObject* made = NULL;
  if (items[0] != NULL && items[1] != NULL) {
    made = ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 3);
  }
  for (Py_ssize_t i = 0; i < 3; ++i) {
    if (made == NULL) {
      Py_XDECREF(items[i]);
    } else {
      PyTuple_SetItem(made, i, items[i]); /* takes over the item */
    }
  }
  return made;
}

PyObject* mtf_call_stat_path(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
  (void)module;
  if (count != 4 || !PyType_Check(arguments[3]) ||
      !PyType_IsSubtype((PyTypeObject*)arguments[3], &PyTuple_Type)) {
    PyErr_SetString(PyExc_TypeError,
                    "stat_path() takes a function, a filesystem, a path and a type of tuples");
    return NULL;
  }
  const StatPath stat_path = (StatPath)(uintptr_t)PyLong_AsVoidPtr(arguments[0]);
  mtf_filesystem* const filesystem = PyLong_AsVoidPtr(arguments[1]);
  const char* const path = PyBytes_AsString(arguments[2]);
  if (PyErr_Occurred()) return NULL;
  Statistics found = {0};
  mtf_error* error;
  Py_BEGIN_ALLOW_THREADS
  error = stat_path(filesystem, path, (char*)&found);
  Py_END_ALLOW_THREADS
  if (error != NULL) return PyLong_FromVoidPtr(error);
  return tuple_of((PyTypeObject*)arguments[3], &found);
}
