/* The Python type Tensor: a description of memory, and what keeps that memory alive. */
#pragma once

/* For the main interpreter, with its GIL: a deleter may run on any thread, and PyGILState_Ensure
 * knows no other interpreter (module.c refuses to be imported there). An interpreter without a GIL
 * turns it on for modules that do not say they can do without. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "modular_tf/dlpack.h"
#include "extents.h"

enum { MTF_INLINE_NDIM = 4 };

typedef struct {
  PyObject_HEAD
  DLTensor dl;            /* byte_offset 0; strides are set; data is NULL where there is no element */
  uint64_t flags;         /* MTF_READ_ONLY, ... */
  int64_t size;           /* elements */
  int64_t n_bytes;        /* of the elements, without gaps */
  PyObject* owner;        /* keeps the memory; or NULL */
  void* managed;          /* what `release` is to be called with, once; or NULL */
  void (*release)(void*); /* frees the memory, or tells its producer */
  Py_ssize_t n_exports;   /* uses of the memory, see lifetime.h */
  int64_t* extents_on_heap; /* where there are more than MTF_INLINE_NDIM dimensions */
  int64_t extents[2 * MTF_INLINE_NDIM];
  int32_t data_type; /* of a subclass: what elements stand for, by its own number; 0: themselves */
  bool is_described;
  bool needs_sync;             /* _before_export must be called first */
  bool is_mutability_unknown;  /* from a legacy struct, which cannot say: treated as read-only */
  bool is_view;  /* the owner is the tensor that has the memory, and this one is a use of it */
  bool is_lent;  /* a borrowed description was given out: the memory stays as long as the tensor */
  bool is_ended; /* the memory goes with its last use */
} Tensor;

/* Set when the module is first imported. */
extern PyTypeObject* mtf_tensor_type;

/* Makes the type; a new reference, or NULL with an exception. */
PyObject* mtf_tensor_type_new(void);

/* A new Tensor of the base type, with no description yet; NULL with an exception. */
Tensor* mtf_tensor_new(void);

/* Checks a description and copies it into a new tensor. Takes nothing over: owner, managed and
 * release are set by the caller after success. Returns -1 with an exception of class `error`. */
int mtf_tensor_describe(Tensor* self, const DLTensor* source, uint64_t flags, PyObject* error);

/* tp_init: Tensor(address, shape, strides, dlpack_dtype, dlpack_device, owner, ...). */
int mtf_tensor_init(PyObject* self, PyObject* args, PyObject* keywords);

/* bytes_of_elements(shape, dtype, is_padded): of so many elements without gaps. */
PyObject* mtf_bytes_of_elements(PyObject* module, PyObject* arguments);

/* Returns the tensor that an object is; NULL with an exception where it is another object, or where
 * a subclass has not called __init__. Borrowed. */
Tensor* mtf_tensor_from(PyObject* object);

/* Whether the host may read the memory: kDLCPU and pinned host memory. */
bool mtf_is_host_readable(DLDevice device);

/* A view of the same memory that says another device. NULL with an exception. */
Tensor* mtf_tensor_view_on(Tensor* self, DLDevice device);
