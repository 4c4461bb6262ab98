/* __dlpack__ and __dlpack_device__. */
#pragma once

#include "tensor.h"

/* What `__dlpack__` may be asked for; None where it is not. */
enum { MTF_STREAM, MTF_MAX_VERSION, MTF_DL_DEVICE, MTF_COPY, MTF_KEYWORDS };

/* Interns the names of the keywords, once. -1 with an exception. */
int mtf_export_prepare(void);

/* __dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None). */
PyObject* mtf_dlpack(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                     PyObject* keywords);

/* __dlpack_device__(). */
PyObject* mtf_dlpack_device(PyObject* self, PyObject* unused);

/* _export_elsewhere(stream, dl_device, copy): what the base class can do, which is host memory. */
PyObject* mtf_export_elsewhere(PyObject* self, PyObject* arguments);

/* Chooses what is exported: the tensor itself, once the work in flight is done, or what its
 * `_export_elsewhere` returns. A tensor in use, for mtf_let_go; NULL with an exception. */
Tensor* mtf_hold_exported(Tensor* self, PyObject* const* request, uint64_t* flags);
