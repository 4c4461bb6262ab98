/* __dlpack__ and __dlpack_device__. */
#ifndef MODULAR_TF_DLPACK_EXPORT_H_
#define MODULAR_TF_DLPACK_EXPORT_H_

#include "tensor.h"

/* Interns the names of the keywords, once. -1 with an exception. */
int mtf_export_prepare(void);

/* __dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None). */
PyObject* mtf_dlpack(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                     PyObject* keywords);

/* __dlpack_device__(). */
PyObject* mtf_dlpack_device(PyObject* self, PyObject* unused);

/* _export_elsewhere(stream, dl_device, copy): what the base class can do, which is host memory. */
PyObject* mtf_export_elsewhere(PyObject* self, PyObject* arguments);

#endif
