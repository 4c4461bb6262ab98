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

/* -- what a consumer gets: managed tensors of both kinds, each of which keeps a Tensor alive -- */

/* Names of capsules: compared by content, but kept by address, so they live as long as we do. */
extern const char mtf_legacy_name[];         /* dltensor */
extern const char mtf_used_legacy_name[];    /* used_dltensor */
extern const char mtf_versioned_name[];      /* dltensor_versioned */
extern const char mtf_used_versioned_name[]; /* used_dltensor_versioned */

/* A managed tensor, which is a use of the memory. Its deleter may run on any thread, with or without
 * the GIL; once the interpreter has ended, or ends on another thread, it leaks what only Python can
 * free. NULL with an exception. */
DLManagedTensorVersioned* mtf_managed_versioned(Tensor* self, uint64_t flags);

/* Tells whether a managed tensor is one of ours. */
bool mtf_is_our_versioned(const DLManagedTensorVersioned* managed);
bool mtf_is_our_legacy(const DLManagedTensor* managed);

/* A capsule that frees the managed tensor unless it is consumed. NULL with an exception. */
PyObject* mtf_versioned_capsule(Tensor* self, uint64_t flags);
PyObject* mtf_legacy_capsule(Tensor* self);
