/* What the core has for calls of kernels, by address: it is another extension module. */
#pragma once

#include "../dlpack/tensor.h"
#include "../host_runtime/kernels/host_types.h"

typedef struct mtf_kernel mtf_kernel;
typedef struct mtf_kernel_result mtf_kernel_result;
typedef struct mtf_executor mtf_executor;

/* The functions of the same names in core/kernels.h and core/executor.h, in this order. */
typedef struct {
  mtf_kernel_result* (*run)(mtf_kernel* kernel, void* stream, mtf_kernel_input* inputs,
                            int32_t n_inputs);
  const mtf_kernel_output* (*outputs)(const mtf_kernel_result* result);
  void* (*take_memory)(mtf_kernel_result* result, int32_t output);
  void (*free_memory)(void* memory);
  void* (*take_buffer)(mtf_kernel_result* result, int32_t output);
  void (*free_buffer)(void* buffer);
  uint64_t (*keeper)(const mtf_kernel_result* result, int32_t input);
  void (*free_result)(mtf_kernel_result* result);
  int (*is_open)(const mtf_executor* executor);
  mtf_kernel_result* (*take_failed)(void);
} CoreFunctions;

/* What calls need and Python has. Set once; its references are kept for good. */
typedef struct {
  CoreFunctions core;
  PyTypeObject* array_type;  /* DeviceArray */
  PyObject* retained;        /* a dict: what inputs are kept, by the number of the keeper */
  PyObject* drop_released;   /* drops those that no kernel keeps any more */
} CallSupport;

extern CallSupport mtf_calls;

/* Names of attributes, as Python strings. */
typedef struct {
  PyObject *device, *executor, *kept_memory, *native, *moment, *await_streams, *raise_failure,
      *array_struct, *numpy_array;
} CallNames;

extern CallNames mtf_call_names;

/* support_calls(addresses, array_type, retained, drop_released). */
PyObject* mtf_support_calls(PyObject* module, PyObject* arguments);
