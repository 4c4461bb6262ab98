/* Foreign managed tensors as ours. */
#pragma once

#include "tensor.h"

/* A tensor that owns the managed one; NULL with an exception, and then the caller still does. */
Tensor* mtf_adopt_versioned(DLManagedTensorVersioned* managed);

/* Frees what was not taken over, and keeps the exception with the reason. */
void mtf_discard_versioned(DLManagedTensorVersioned* managed);

/* consume(capsule): takes over what an unconsumed capsule of either kind holds, and renames it. On
 * an error the capsule is left as it was, so that its destructor frees; what is of another major
 * version is given back at once. */
PyObject* mtf_consume(PyObject* module, PyObject* capsule);

/* -- __dlpack_c_exchange_api__: our own table, and those of other types -- */

/* Sets our table on the type. -1 with an exception. */
int mtf_publish_exchange_table(PyObject* type);

/* import_by_table(object): the tensor, through its type's table; None where that has none for us,
 * or may not say enough of the tensor. */
PyObject* mtf_import_by_table(PyObject* module, PyObject* object);

/* export_by_table(tensor, type): an object of `type`, through its table; None where it has none. */
PyObject* mtf_export_by_table(PyObject* module, PyObject* const* arguments, Py_ssize_t count);

/* set_work_stream_query(function): who knows the streams of devices; called with the DLPack type and
 * number of one, it returns the address of a stream, or 0. */
PyObject* mtf_set_work_stream_query(PyObject* module, PyObject* query);
