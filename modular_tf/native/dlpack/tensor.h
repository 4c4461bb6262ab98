/* The parts of modular_tf.native._dlpack: tensors that other libraries take without a copy, and theirs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modular_tf/dlpack.h"

/* Flags, by shorter names. */
#define MTF_READ_ONLY DLPACK_FLAG_BITMASK_READ_ONLY
#define MTF_IS_COPIED DLPACK_FLAG_BITMASK_IS_COPIED
#define MTF_PADDED DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED

enum { MTF_MAX_NDIM = 64 }; /* numpy's and memoryview's limit too */

/* *result = a * b + c; false, and no result of use, where that is not within 64 bits. */
static inline bool mtf_multiply_add(int64_t a, int64_t b, int64_t c, int64_t* result) {
  int64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(product, c, result);
}

/* Whether DLPack has such a data type, of whatever width. */
bool mtf_is_dtype(DLDataType dtype);

/* Whether a data type that DLPack has is of a width that it may have: many have one only. */
bool mtf_has_its_width(DLDataType dtype);

/* Whether there are at most MTF_MAX_NDIM dimensions, and a shape where there is one. */
bool mtf_has_extents(const DLTensor* tensor);

/* Bytes of one element; 0 where several elements share one (packed sub-byte types). */
int64_t mtf_item_size(DLDataType dtype, uint64_t flags);

/* Elements, and the bytes of so many without gaps: the only formula for them. False: the shape is
 * negative somewhere, or a number is over 2^63. */
bool mtf_count(const DLTensor* tensor, uint64_t flags, int64_t* size, int64_t* n_bytes);

/* C order, in elements. */
void mtf_compact_strides(int32_t ndim, const int64_t* shape, int64_t* strides);

/* Whether the elements lie without gaps in C order, or in Fortran order. */
bool mtf_is_c_contiguous(const DLTensor* tensor);

/* Whether an index that grows anywhere moves back in memory. */
bool mtf_has_negative_stride(const DLTensor* tensor);

/* Copies the elements, of `item_size` bytes each, to `to` in C order. */
void mtf_copy_elements(const DLTensor* from, size_t item_size, char* to);

/* Memory with DLPack's alignment of 256 bytes, for free(); NULL: there is none. */
void* mtf_aligned_memory(int64_t n_bytes);

/* The Python type Tensor: a description of memory, and what keeps that memory alive. */

/* For the main interpreter, with its GIL: a deleter may run on any thread, and PyGILState_Ensure
 * knows no other interpreter (module.c refuses to be imported there). An interpreter without a GIL
 * turns it on for modules that do not say they can do without. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

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
  Py_ssize_t n_exports;   /* uses of the memory */
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

/* Returns the tensor that an object is; NULL with an exception where it is another object, or where
 * a subclass has not called __init__. Borrowed. */
Tensor* mtf_tensor_from(PyObject* object);

/* Whether the host may read the memory: kDLCPU and pinned host memory. */
bool mtf_is_host_readable(DLDevice device);

/* A view of the same memory that says another device. NULL with an exception. */
Tensor* mtf_tensor_view_on(Tensor* self, DLDevice device);

/* How long the memory of a tensor is kept.
 *
 * Uses of it are counted: managed tensors and buffers of consumers, views, and calls that export or
 * copy. Where Python code may run, or another thread, a use begins before that. `_end_memory` lets the
 * owner go with the last use; a tensor that is not ended keeps it until it is destroyed itself. */

/* Releases the memory that a tensor has. May be called with an exception pending, which it keeps. */
void mtf_release_memory(Tensor* self);

/* Begins a use, and keeps the tensor. */
static inline void mtf_hold(Tensor* self) {
  Py_INCREF((PyObject*)self);
  ++self->n_exports;
}

static inline void mtf_release_if_unused(Tensor* self) {
  if (self->is_ended && !self->is_lent && self->n_exports == 0) mtf_release_memory(self);
}

/* Ends a use. May be called with an exception pending, which it keeps. */
static inline void mtf_let_go(Tensor* self) {
  --self->n_exports;
  mtf_release_if_unused(self);
  Py_DECREF((PyObject*)self);
}

/* Waits for the work in flight by `_before_export(stream)`. -1 with an exception where that raised, or
 * the memory was ended meanwhile. */
int mtf_wait_for_work(Tensor* self, PyObject* stream);

/* Begins a use once the work in flight is done; -1 with an exception, and no use has begun. */
static inline int mtf_hold_when_done(Tensor* self, PyObject* stream) {
  mtf_hold(self);
  if ((!self->needs_sync && stream == Py_None) || mtf_wait_for_work(self, stream) == 0) return 0;
  mtf_let_go(self);
  return -1;
}

/* The tensor that has the memory, which is never a view; of one that gave it back, itself. Borrowed. */
static inline Tensor* mtf_root(Tensor* self) {
  return self->is_view && self->owner != NULL ? (Tensor*)self->owner : self;
}

/* _end_memory(). */
PyObject* mtf_end_memory(PyObject* self, PyObject* unused);

/* tp_dealloc. */
void mtf_tensor_deallocate(PyObject* self);

/* -- whether what may be called on any thread and at any time, as a deleter, can still reach Python -- */

/* Whether PyGILState_Ensure returns on this thread. While Python finalises it does on the thread that
 * finalises, and ends or blocks every other one; afterwards there is nothing to take.
 *
 * A thread that asks while the interpreter runs, and is overtaken by its end before it has the GIL, is
 * ended or blocked by Python: the stable ABI has no means against that. */
bool mtf_can_take_gil(void);

/* -- the owner of C memory: a capsule, which the collector neither finalizes nor clears.
 *
 * Finalizers of a cycle run in any order. A stream's may write what it has buffered after that of a
 * cffi pointer (`ffi.gc`) has freed the file. A capsule is freed when all finalizers have run -- */

/* A capsule whose end calls the function, without the GIL. NULL with an exception, and then nothing is
 * taken over. */
PyObject* mtf_own(void* pointer, void (*free_it)(void*));

/* -- exchange.c and prepared_call.c -- */

/* Interns the names of keywords, once; sets our exchange table on the type. -1 with an exception. */
int mtf_export_prepare(void);
int mtf_publish_exchange_table(PyObject* type);
/* A new type; NULL with an exception. */
PyObject* mtf_prepared_call_type_new(void);

/* Methods of Tensor and functions of the module, as _dlpack.pyi documents them. */
PyObject* mtf_dlpack(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                     PyObject* keywords);
PyObject* mtf_dlpack_device(PyObject* self, PyObject* unused);
PyObject* mtf_export_elsewhere(PyObject* self, PyObject* arguments);
PyObject* mtf_bytes_of_elements(PyObject* module, PyObject* arguments);
PyObject* mtf_repacked(PyObject* module, PyObject* arguments);
PyObject* mtf_consume(PyObject* module, PyObject* capsule);
PyObject* mtf_import_by_table(PyObject* module, PyObject* object);
PyObject* mtf_export_by_table(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* mtf_set_work_stream_query(PyObject* module, PyObject* query);
PyObject* mtf_call_prepared(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* mtf_support_calls(PyObject* module, PyObject* arguments);
