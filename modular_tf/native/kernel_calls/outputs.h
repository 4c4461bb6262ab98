/* What comes out of a call, as arrays of the device. */
#ifndef MODULAR_TF_KERNEL_CALLS_OUTPUTS_H_
#define MODULAR_TF_KERNEL_CALLS_OUTPUTS_H_

#include "core_functions.h"

/* What all arrays of a call have in common. */
typedef struct {
  DLDevice place;
  PyObject *device, *executor;
} ArrayPlace;

/* Output `index` of a call that is over; NULL with an exception. */
PyObject* mtf_output_array(mtf_kernel_result* result, int32_t index, DLDataType dtype,
                           const ArrayPlace* place);

#endif
