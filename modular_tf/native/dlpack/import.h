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
