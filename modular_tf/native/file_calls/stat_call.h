/* A question for the statistics of a file, answered by an object of Python's.
 *
 * cffi's way costs as much as the question: a buffer, its unpacking, a tuple, and an object for the
 * error that did not happen. */
#pragma once

#include "../dlpack/tensor.h"

/* stat_path(function, filesystem, path, type): calls the function of core/filesystem.h, whose address is
 * given, and returns a `type`, a tuple of length, mtime_nsec and is_directory; or the address of the error,
 * which is then the caller's. */
PyObject* mtf_call_stat_path(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
