#include "core_functions.h"

CallSupport mtf_calls;
CallNames mtf_call_names;

static int intern_names(void) {
  struct {
    PyObject** name;
    const char* text;
  } const all[] = {
      {&mtf_call_names.device, "_device"},
      {&mtf_call_names.executor, "_executor"},
      {&mtf_call_names.kept_memory, "_kept_memory"},
      {&mtf_call_names.native, "native"},
      {&mtf_call_names.moment, "moment"},
      {&mtf_call_names.await_streams, "await_streams"},
      {&mtf_call_names.raise_failure, "raise_failure"},
      {&mtf_call_names.array_struct, "__array_struct__"},
      {&mtf_call_names.numpy_array, "ndarray"},
  };
  for (size_t index = 0; index < sizeof all / sizeof *all; ++index) {
    if (*all[index].name == NULL) *all[index].name = PyUnicode_InternFromString(all[index].text);
    if (*all[index].name == NULL) return -1;
  }
  return 0;
}

PyObject* mtf_support_calls(PyObject* module, PyObject* arguments) {
  (void)module;
  unsigned long long at[10];
  PyObject *array_type, *retained, *drop_released;
  if (!PyArg_ParseTuple(arguments, "(KKKKKKKKKK)O!O!O:support_calls", &at[0], &at[1], &at[2], &at[3],
                        &at[4], &at[5], &at[6], &at[7], &at[8], &at[9], &PyType_Type,
                        &array_type, &PyDict_Type, &retained, &drop_released) ||
      intern_names() < 0) {
    return NULL;
  }
  if (!PyType_IsSubtype((PyTypeObject*)array_type, mtf_tensor_type)) {
    PyErr_SetString(PyExc_TypeError, "expected a type of tensors");
    return NULL;
  }
  CallSupport made = {.array_type = (PyTypeObject*)array_type, .retained = retained,
                      .drop_released = drop_released};
  void** slots = (void**)&made.core;
  for (size_t index = 0; index < 10; ++index) slots[index] = (void*)(uintptr_t)at[index];
  Py_INCREF(array_type);
  Py_INCREF(retained);
  Py_INCREF(drop_released);
  mtf_calls = made;
  Py_RETURN_NONE;
}
