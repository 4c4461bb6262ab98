#include "outputs.h"

#include "../dlpack/owned_pointer.h"

/* What owns the memory of an output; NULL without an exception where there is no memory. */
static PyObject* take_owner(mtf_kernel_result* result, int32_t index,
                            const mtf_kernel_output* output) {
  const bool is_memory = output->owner != NULL;
  if (!is_memory && output->buffer == NULL) return NULL;
  PyObject* owner = mtf_own(is_memory ? output->owner : output->buffer,
                            is_memory ? mtf_calls.core.free_memory : mtf_calls.core.free_buffer);
  if (owner == NULL) return NULL;
  (void)(is_memory ? mtf_calls.core.take_memory : mtf_calls.core.take_buffer)(result, index);
  return owner;
}

static int describe(Tensor* tensor, const mtf_kernel_output* output, DLDataType dtype,
                    DLDevice place) {
  const DLTensor dl = {.data = output->data, .device = place, .ndim = output->rank, .dtype = dtype,
                       .shape = (int64_t*)output->dims};
  if (mtf_tensor_describe(tensor, &dl, 0, PyExc_ValueError) < 0) return -1;
  if ((uint64_t)tensor->n_bytes <= output->size) return 0;
  PyErr_Format(PyExc_ValueError, "an output of %lld bytes lies in a memory of %llu",
               (long long)tensor->n_bytes, (unsigned long long)output->size);
  return -1;
}

static int set_attributes(PyObject* array, const ArrayPlace* place) {
  return PyObject_SetAttr(array, mtf_call_names.device, place->device) < 0 ||
                 PyObject_SetAttr(array, mtf_call_names.executor, place->executor) < 0 ||
                 PyObject_SetAttr(array, mtf_call_names.kept_memory, Py_None) < 0
             ? -1
             : 0;
}

PyObject* mtf_output_array(mtf_kernel_result* result, int32_t index, DLDataType dtype,
                           int32_t data_type, const ArrayPlace* place) {
  const mtf_kernel_output* output = mtf_calls.core.outputs(result) + index;
  PyObject* owner = take_owner(result, index, output);
  if (owner == NULL && PyErr_Occurred()) return NULL;
  PyObject* array = PyType_GenericAlloc(mtf_calls.array_type, 0);
  if (array != NULL && (describe((Tensor*)array, output, dtype, place->place) < 0 ||
                        set_attributes(array, place) < 0)) {
    Py_CLEAR(array);
  }
  if (array == NULL) {
    Py_XDECREF(owner);
    return NULL;
  }
  ((Tensor*)array)->owner = owner;
  ((Tensor*)array)->needs_sync = true;
  ((Tensor*)array)->data_type = data_type;
  return array;
}
