/* The owner of C memory: a capsule, which the collector neither finalizes nor clears.
 *
 * Finalizers of a cycle run in any order. A stream's may write what it has buffered after that of a
 * cffi pointer (`ffi.gc`) has freed the file. A capsule is freed when all finalizers have run. */
#pragma once

#include "tensor.h"

/* A capsule whose end calls the function, without the GIL. NULL with an exception, and then nothing is
 * taken over. */
PyObject* mtf_own(void* pointer, void (*free_it)(void*));

/* owned_pointer(address, free_address): such a capsule. */
PyObject* mtf_owned_pointer(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
