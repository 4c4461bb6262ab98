/* Copies of host memory, in C order. */
#pragma once

#include "tensor.h"

/* A compact copy in new host memory, with IS_COPIED, whose elements are padded if `padded` is
 * MTF_PADDED and packed if it is 0. The GIL is released while bytes are copied, so
 * that the caller has to hold the memory. NULL with an exception. */
Tensor* mtf_tensor_host_copy(Tensor* self, uint64_t padded);

/* repacked(tensor, is_padded): such a copy. */
PyObject* mtf_repacked(PyObject* module, PyObject* arguments);
