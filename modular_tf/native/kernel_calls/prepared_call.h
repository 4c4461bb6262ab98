/* Calls of kernels that were made before, on a device in host memory.
 *
 * The general way (modular_tf/kernel/op.py) finds the node and the kernel, and how the inputs go in;
 * here is what it found, for calls with inputs of the same types. Whatever is unusual is left to it. */
#pragma once

#include "../dlpack/tensor.h"

/* A new type; NULL with an exception. */
PyObject* mtf_prepared_call_type_new(void);

/* call_prepared(calls, inputs): what comes out; NotImplemented where none of them fits. */
PyObject* mtf_call_prepared(PyObject* module, PyObject* const* arguments, Py_ssize_t count);

/* support_calls(addresses, array_type, retained, drop_released): what calls need; before all other use. */
PyObject* mtf_support_calls(PyObject* module, PyObject* arguments);
