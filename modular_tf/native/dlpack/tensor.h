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

/* Writes the widths that a type code may have, "16 or 32"; nothing where it may have any. */
void mtf_list_widths(uint8_t code, char* text, size_t room);

/* Whether there are at most MTF_MAX_NDIM dimensions, and a shape where there is one. */
bool mtf_has_extents(const DLTensor* tensor);

/* Bytes of one element; 0 where several elements share one (packed sub-byte types). */
int64_t mtf_item_size(DLDataType dtype, uint64_t flags);

/* Elements, and the bytes of so many without gaps: the only formula for them. False: the shape is
 * negative somewhere, or a number is over 2^63. */
bool mtf_count(const DLTensor* tensor, uint64_t flags, int64_t* size, int64_t* n_bytes);

/* C order, in elements. */
void mtf_compact_strides(int32_t ndim, const int64_t* shape, int64_t* strides);

/* Whether all elements have an offset from `data` within 64 bits and, where `data` is an address of
 * the host's, an address. Strides that lead nowhere become 0 if their bytes are not within 64 bits.
 * `size` is how many elements there are. */
bool mtf_fit_strides(DLTensor* tensor, int64_t size, uint64_t flags, bool is_address);

/* Whether the elements lie without gaps in C order, or in Fortran order. */
bool mtf_is_c_contiguous(const DLTensor* tensor);
bool mtf_is_f_contiguous(const DLTensor* tensor);

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

/* note_interpreter_ends(): for atexit, which calls it on the thread that finalises. */
PyObject* mtf_note_interpreter_ends(PyObject* module, PyObject* unused);

/* -- the owner of C memory: a capsule, which the collector neither finalizes nor clears.
 *
 * Finalizers of a cycle run in any order. A stream's may write what it has buffered after that of a
 * cffi pointer (`ffi.gc`) has freed the file. A capsule is freed when all finalizers have run -- */

/* A capsule whose end calls the function, without the GIL. NULL with an exception, and then nothing is
 * taken over. */
PyObject* mtf_own(void* pointer, void (*free_it)(void*));

/* owned_pointer(address, free_address): such a capsule. */
PyObject* mtf_owned_pointer(PyObject* module, PyObject* const* arguments, Py_ssize_t count);

/* Copies of host memory, in C order. */

/* A compact copy in new host memory, with IS_COPIED, whose elements are padded if `padded` is
 * MTF_PADDED and packed if it is 0. The GIL is released while bytes are copied, so
 * that the caller has to hold the memory. NULL with an exception. */
Tensor* mtf_tensor_host_copy(Tensor* self, uint64_t padded);

/* repacked(tensor, is_padded): such a copy. */
PyObject* mtf_repacked(PyObject* module, PyObject* arguments);

/* __dlpack__ and __dlpack_device__. */

/* What `__dlpack__` may be asked for; None where it is not. */
enum { MTF_STREAM, MTF_MAX_VERSION, MTF_DL_DEVICE, MTF_COPY, MTF_KEYWORDS };

/* Interns the names of the keywords, once. -1 with an exception. */
int mtf_export_prepare(void);

/* __dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None). */
PyObject* mtf_dlpack(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                     PyObject* keywords);

/* __dlpack_device__(). */
PyObject* mtf_dlpack_device(PyObject* self, PyObject* unused);

/* _export_elsewhere(stream, dl_device, copy): what the base class can do, which is host memory. */
PyObject* mtf_export_elsewhere(PyObject* self, PyObject* arguments);

/* Chooses what is exported: the tensor itself, once the work in flight is done, or what its
 * `_export_elsewhere` returns. A tensor in use, for mtf_let_go; NULL with an exception. */
Tensor* mtf_hold_exported(Tensor* self, PyObject* const* request, uint64_t* flags);

/* -- what a consumer gets: managed tensors of both kinds, each of which keeps a Tensor alive -- */

/* Names of capsules: compared by content, but kept by address, so they live as long as we do. */
extern const char mtf_legacy_name[];         /* dltensor */
extern const char mtf_used_legacy_name[];    /* used_dltensor */
extern const char mtf_versioned_name[];      /* dltensor_versioned */
extern const char mtf_used_versioned_name[]; /* used_dltensor_versioned */

/* A managed tensor, which is a use of the memory. Its deleter may run on any thread, with or without
 * the GIL; once the interpreter has ended, or ends on another thread, it leaks what only Python can
 * free. NULL with an exception. */
DLManagedTensorVersioned* mtf_managed_versioned(Tensor* self, uint64_t flags);

/* Tells whether a managed tensor is one of ours. */
bool mtf_is_our_versioned(const DLManagedTensorVersioned* managed);
bool mtf_is_our_legacy(const DLManagedTensor* managed);

/* A capsule that frees the managed tensor unless it is consumed. NULL with an exception. */
PyObject* mtf_versioned_capsule(Tensor* self, uint64_t flags);
PyObject* mtf_legacy_capsule(Tensor* self);

/* Foreign managed tensors as ours. */

/* A tensor that owns the managed one; NULL with an exception, and then the caller still does. */
Tensor* mtf_adopt_versioned(DLManagedTensorVersioned* managed);

/* Frees what was not taken over, and keeps the exception with the reason. */
void mtf_discard_versioned(DLManagedTensorVersioned* managed);

/* consume(capsule): takes over what an unconsumed capsule of either kind holds, and renames it. On
 * an error the capsule is left as it was, so that its destructor frees; what is of another major
 * version is given back at once. */
PyObject* mtf_consume(PyObject* module, PyObject* capsule);

/* -- __dlpack_c_exchange_api__: our own table, and those of other types -- */

/* Sets our table on the type. -1 with an exception. */
int mtf_publish_exchange_table(PyObject* type);

/* import_by_table(object): the tensor, through its type's table; None where that has none for us,
 * or may not say enough of the tensor. */
PyObject* mtf_import_by_table(PyObject* module, PyObject* object);

/* export_by_table(tensor, type): an object of `type`, through its table; None where it has none. */
PyObject* mtf_export_by_table(PyObject* module, PyObject* const* arguments, Py_ssize_t count);

/* set_work_stream_query(function): who knows the streams of devices; called with the DLPack type and
 * number of one, it returns the address of a stream, or 0. */
PyObject* mtf_set_work_stream_query(PyObject* module, PyObject* query);

/* Calls of kernels that were made before, on a device in host memory.
 *
 * The general way (modular_tf/kernel/op.py) finds the node and the kernel, and how the inputs go in;
 * here is what it found, for calls with inputs of the same types. Whatever is unusual is left to it. */

/* A new type; NULL with an exception. */
PyObject* mtf_prepared_call_type_new(void);

/* call_prepared(calls, inputs): what comes out; NotImplemented where none of them fits. */
PyObject* mtf_call_prepared(PyObject* module, PyObject* const* arguments, Py_ssize_t count);

/* support_calls(addresses, array_type, retained, drop_released): what calls need; before all other use. */
PyObject* mtf_support_calls(PyObject* module, PyObject* arguments);

/* A question for the statistics of a file, answered by an object of Python's.
 *
 * cffi's way costs as much as the question: a buffer, its unpacking, a tuple, and an object for the
 * error that did not happen. */

/* stat_path(function, filesystem, path, type): calls the function of core/filesystem.h, whose address is
 * given, and returns a `type`, a tuple of length, mtime_nsec and is_directory; or the address of the error,
 * which is then the caller's. */
PyObject* mtf_call_stat_path(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
