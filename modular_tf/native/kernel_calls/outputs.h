/* What comes out of a call, as arrays of the device. */
#pragma once

#include "core_functions.h"

/* What all arrays of a call have in common. */
typedef struct {
  DLDevice place;
  PyObject *device, *executor;
} ArrayPlace;

/* Output `index` of a call that is over, whose elements stand for `data_type`; NULL with an exception. */
PyObject* mtf_output_array(mtf_kernel_result* result, int32_t index, DLDataType dtype,
                           int32_t data_type, const ArrayPlace* place);
