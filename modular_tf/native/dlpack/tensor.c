#include "tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256 };

enum { MOST_WIDTHS = 4 };

/* The widths of those types that have not any one. Floating point is of IEEE's formats. */
static const uint8_t widths[kDLFloat4_e2m1fn + 1][MOST_WIDTHS] = {
    [kDLFloat] = {16, 32, 64, 128},
    [kDLBfloat] = {16},
    [kDLComplex] = {32, 64, 128},
    [kDLBool] = {8},
    [kDLFloat8_e3m4] = {8},
    [kDLFloat8_e4m3] = {8},
    [kDLFloat8_e4m3b11fnuz] = {8},
    [kDLFloat8_e4m3fn] = {8},
    [kDLFloat8_e4m3fnuz] = {8},
    [kDLFloat8_e5m2] = {8},
    [kDLFloat8_e5m2fnuz] = {8},
    [kDLFloat8_e8m0fnu] = {8},
    [kDLFloat6_e2m3fn] = {6},
    [kDLFloat6_e3m2fn] = {6},
    [kDLFloat4_e2m1fn] = {4},
};

bool mtf_is_dtype(DLDataType dtype) {
  return dtype.code <= kDLFloat4_e2m1fn && dtype.bits > 0 && dtype.lanes > 0;
}

bool mtf_has_its_width(DLDataType dtype) {
  const uint8_t* allowed = widths[dtype.code];
  return allowed[0] == 0 || memchr(allowed, dtype.bits, MOST_WIDTHS) != NULL;
}

/* Writes the widths that a type code may have, "16 or 32"; nothing where it may have any. */
static void mtf_list_widths(uint8_t code, char* text, size_t room) {
  size_t used = 0;
  text[0] = '\0';
  for (int i = 0; i < MOST_WIDTHS && widths[code][i] != 0 && used < room; ++i) {
    used += (size_t)snprintf(text + used, room - used, i == 0 ? "%d" : " or %d", widths[code][i]);
  }
}

bool mtf_has_extents(const DLTensor* tensor) {
  return tensor->ndim == 0 ||
         (tensor->ndim > 0 && tensor->ndim <= MTF_MAX_NDIM && tensor->shape != NULL);
}

/* Padding gives each lane bytes of its own. */
int64_t mtf_item_size(DLDataType dtype, uint64_t flags) {
  const int64_t bits = (int64_t)dtype.bits * dtype.lanes;
  if ((flags & MTF_PADDED) != 0) {
    return (dtype.bits + 7) / 8 * (int64_t)dtype.lanes;
  }
  return bits % 8 == 0 ? bits / 8 : 0;
}

/* What strides are multiplied by: the bytes of an element, or its bits where elements share bytes. */
static int64_t unit_of(DLDataType dtype, uint64_t flags) {
  const int64_t item = mtf_item_size(dtype, flags);
  return item != 0 ? item : (int64_t)dtype.bits * dtype.lanes;
}

static bool elements_of(const DLTensor* tensor, int64_t* size) {
  bool is_empty = false, is_within_bounds = true;
  *size = 1;
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    if (tensor->shape[i] < 0) return false;
    is_empty |= tensor->shape[i] == 0;
    is_within_bounds &= mtf_multiply_add(*size, tensor->shape[i], 0, size);
  }
  if (is_empty) *size = 0;
  return is_empty || is_within_bounds;
}

bool mtf_count(const DLTensor* tensor, uint64_t flags, int64_t* size, int64_t* n_bytes) {
  const int64_t unit = unit_of(tensor->dtype, flags);
  if (!elements_of(tensor, size)) return false;
  if (mtf_item_size(tensor->dtype, flags) != 0) return mtf_multiply_add(*size, unit, 0, n_bytes);
  if (!mtf_multiply_add(*size, unit, 7, n_bytes)) return false;
  *n_bytes /= 8;
  return true;
}

void mtf_compact_strides(int32_t ndim, const int64_t* shape, int64_t* strides) {
  int64_t stride = 1;
  for (int32_t i = ndim; i-- > 0;) {
    strides[i] = stride;
    /* Of an empty tensor no stride is ever used, and a product may overflow. */
    if (shape[i] > 0 && !mtf_multiply_add(stride, shape[i], 0, &stride)) stride = 0;
  }
}

static bool is_within_memory(const DLTensor* tensor, int64_t first, int64_t end) {
  uintptr_t address = 0;
  const uintptr_t data = (uintptr_t)tensor->data;
  return !__builtin_add_overflow(data, first, &address) &&
         !__builtin_add_overflow(data, end, &address);
}

/* Tells of nearly all tensors, by few multiplications, that no stride leads far: none is negative,
 * and as many steps as there are elements end within memory, each as long as all strides together. */
static bool is_surely_within_memory(const DLTensor* tensor, int64_t size, int64_t unit) {
  int64_t step = 0, end = 0;
  for (int32_t i = 0; i < tensor->ndim; ++i) step |= tensor->strides[i];
  return step >= 0 && size > 0 && mtf_multiply_add(step, unit, 0, &step) &&
         mtf_multiply_add(size, step, unit, &end) && is_within_memory(tensor, 0, end);
}

/* Whether all elements have an offset from `data` within 64 bits and, where `data` is an address of
 * the host's, an address. Strides that lead nowhere become 0 if their bytes are not within 64 bits.
 * `size` is how many elements there are. */
static bool mtf_fit_strides(DLTensor* tensor, int64_t size, uint64_t flags, bool is_address) {
  const int64_t unit = unit_of(tensor->dtype, flags);
  if (is_surely_within_memory(tensor, size, unit)) return true;
  int64_t lowest = 0, highest = unit, step = 0;
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    const bool fits = mtf_multiply_add(tensor->strides[i], unit, 0, &step);
    if (size == 0 || tensor->shape[i] == 1) {
      if (!fits) tensor->strides[i] = 0;
      continue;
    }
    int64_t* end = step < 0 ? &lowest : &highest;
    if (!fits || !mtf_multiply_add(tensor->shape[i] - 1, step, *end, end)) return false;
  }
  if (!is_address || size == 0) return true;
  if (mtf_item_size(tensor->dtype, flags) != 0) return is_within_memory(tensor, lowest, highest);
  return is_within_memory(tensor, lowest / 8, highest / 8);
}

static bool is_empty(const DLTensor* tensor) {
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    if (tensor->shape[i] == 0) return true;
  }
  return false;
}

/* A dimension of one element may have any stride. */
static bool follows(const DLTensor* tensor, int32_t i, int64_t* expected) {
  if (tensor->shape[i] != 1 && tensor->strides[i] != *expected) return false;
  *expected *= tensor->shape[i]; /* at most the number of elements, which was counted */
  return true;
}

/* Whether elements follow each other, along the dimension `first`, then the next one in this direction. */
static bool is_contiguous(const DLTensor* tensor, int32_t first, int32_t direction) {
  int64_t expected = 1;
  if (is_empty(tensor)) return true;
  for (int32_t i = first; i >= 0 && i < tensor->ndim; i += direction) {
    if (!follows(tensor, i, &expected)) return false;
  }
  return true;
}

bool mtf_is_c_contiguous(const DLTensor* tensor) { return is_contiguous(tensor, tensor->ndim - 1, -1); }

static bool is_f_contiguous(const DLTensor* tensor) { return is_contiguous(tensor, 0, 1); }

bool mtf_has_negative_stride(const DLTensor* tensor) {
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    if (tensor->strides[i] < 0 && tensor->shape[i] > 1) return !is_empty(tensor);
  }
  return false;
}

/* Copies dimension `axis` and those after it; returns where the next element goes. */
static char* copy_from_axis(const DLTensor* tensor, size_t item_size, int32_t axis,
                            const char* from, char* to) {
  if (axis == tensor->ndim) {
    memcpy(to, from, item_size);
    return to + item_size;
  }
  const int64_t count = tensor->shape[axis];
  const ptrdiff_t step = (ptrdiff_t)tensor->strides[axis] * (ptrdiff_t)item_size;
  if (axis == tensor->ndim - 1 && tensor->strides[axis] == 1) {
    memcpy(to, from, (size_t)count * item_size);
    return to + (size_t)count * item_size;
  }
  for (int64_t i = 0; i < count; ++i) {
    to = copy_from_axis(tensor, item_size, axis + 1, from + i * step, to);
  }
  return to;
}

void mtf_copy_elements(const DLTensor* from, size_t item_size, char* to) {
  if (!is_empty(from)) copy_from_axis(from, item_size, 0, from->data, to);
}

void* mtf_aligned_memory(int64_t n_bytes) {
  void* memory = NULL;
  const size_t size = n_bytes == 0 ? 1 : (size_t)n_bytes;
  return posix_memalign(&memory, ALIGNMENT, size) == 0 ? memory : NULL;
}

PyTypeObject* mtf_tensor_type;

bool mtf_is_host_readable(DLDevice device) {
  return device.device_type == kDLCPU || device.device_type == kDLCUDAHost ||
         device.device_type == kDLROCMHost;
}

Tensor* mtf_tensor_new(void) {
  return (Tensor*)PyType_GenericAlloc(mtf_tensor_type, 0);
}

Tensor* mtf_tensor_from(PyObject* object) {
  if (!PyObject_TypeCheck(object, mtf_tensor_type)) {
    PyErr_Format(PyExc_TypeError, "expected a modular_tf tensor, found %R", Py_TYPE(object));
    return NULL;
  }
  if (!((Tensor*)object)->is_described) {
    PyErr_SetString(PyExc_ValueError,
                    "the tensor describes no memory: its class did not call Tensor.__init__");
    return NULL;
  }
  return (Tensor*)object;
}

Tensor* mtf_tensor_view_on(Tensor* self, DLDevice device) {
  Tensor* view = mtf_tensor_new();
  DLTensor dl = self->dl;
  if (view == NULL) return NULL;
  dl.device = device;
  if (mtf_tensor_describe(view, &dl, self->flags & ~MTF_IS_COPIED, PyExc_BufferError) < 0) {
    Py_DECREF((PyObject*)view);
    return NULL;
  }
  view->is_mutability_unknown = self->is_mutability_unknown;
  mtf_hold(mtf_root(self));
  view->owner = (PyObject*)mtf_root(self);
  view->is_view = true;
  return view;
}

/* -- from arguments, or a producer's struct, to a checked description -- */

enum { LAST_DEVICE_TYPE = 21 }; /* 19 to 21 were merged after DLPack 1.3 */

/* Behind these `data` is a handle and not an address: nothing here could read it or offset it, and
 * there are consumers that run the deleter of such tensors twice (dlpack §2). NULL for others. */
static const char* handle_of(DLDeviceType device_type) {
  switch (device_type) {
    case kDLOpenCL: return "kDLOpenCL";
    case kDLVulkan: return "kDLVulkan";
    case kDLMetal: return "kDLMetal";
    case kDLVPI: return "kDLVPI";
    case kDLWebGPU: return "kDLWebGPU";
    default: return NULL;
  }
}

static bool is_known_device(int32_t device_type) {
  return device_type >= kDLCPU && device_type <= LAST_DEVICE_TYPE && device_type != 5 &&
         device_type != 6;
}

/* DLPack numbers neither host memory nor what all devices of a kind share. */
static bool is_numbered(DLDevice device) {
  return !mtf_is_host_readable(device) && device.device_type != kDLCUDAManaged;
}

static int check_device(DLDevice device, PyObject* error) {
  if (!is_known_device(device.device_type)) {
    PyErr_Format(error, "DLPack device type %d is unknown", (int)device.device_type);
    return -1;
  }
  const char* handle = handle_of(device.device_type);
  if (handle == NULL) return 0;
  PyErr_Format(error,
               "memory of DLPack device (%d, %d), %s, is a handle of its API and not an address: "
               "no element can be found by it, and some consumers release it twice. Use a copy in "
               "host memory, as from_dlpack(producer, device='cpu') asks the producer for",
               (int)device.device_type, (int)device.device_id, handle);
  return -1;
}

static int check_dtype(DLDataType dtype, PyObject* error) {
  char expected[32];
  if (!mtf_is_dtype(dtype)) {
    PyErr_Format(error, "no such DLPack data type: code %d, %d bits, %d lanes", (int)dtype.code,
                 (int)dtype.bits, (int)dtype.lanes);
    return -1;
  }
  if (mtf_has_its_width(dtype)) return 0;
  mtf_list_widths(dtype.code, expected, sizeof expected);
  PyErr_Format(error, "elements of DLPack type code %d: expected %s bits, found %d",
               (int)dtype.code, expected, (int)dtype.bits);
  return -1;
}

static int check_extents(const DLTensor* source, PyObject* error) {
  if (mtf_has_extents(source)) return 0;
  if (source->ndim > 0 && source->ndim <= MTF_MAX_NDIM) {
    PyErr_SetString(error, "the tensor has dimensions and no shape");
  } else {
    PyErr_Format(error, "expected 0 to %d dimensions, found %d", (int)MTF_MAX_NDIM,
                 (int)source->ndim);
  }
  return -1;
}

static int check_memory(const Tensor* self, const DLTensor* source, PyObject* error) {
  if (self->size == 0 || source->data != NULL) return 0;
  PyErr_Format(error, "%lld elements at address NULL", (long long)self->size);
  return -1;
}

/* Points shape and strides at memory of the tensor's own, and fills it. */
static int copy_extents(Tensor* self, const DLTensor* source) {
  int64_t* extents = self->extents;
  const size_t n = (size_t)source->ndim;
  if (source->ndim > MTF_INLINE_NDIM) {
    extents = self->extents_on_heap = malloc(2 * n * sizeof(int64_t));
    if (extents == NULL) {
      PyErr_NoMemory();
      return -1;
    }
  }
  self->dl.shape = n == 0 ? NULL : extents;
  self->dl.strides = n == 0 ? NULL : extents + n;
  if (n > 0) memcpy(extents, source->shape, n * sizeof(int64_t));
  if (n > 0 && source->strides != NULL) {
    memcpy(extents + n, source->strides, n * sizeof(int64_t));
  } else {
    mtf_compact_strides(source->ndim, source->shape, extents + n);
  }
  return 0;
}

/* Where the first element is; false: nowhere in the address space. */
static bool find_data(Tensor* self, const DLTensor* source) {
  uintptr_t address = 0;
  if (__builtin_add_overflow((uintptr_t)source->data, source->byte_offset, &address)) return false;
  self->dl.data = self->size == 0 ? NULL : (void*)address;
  self->dl.byte_offset = 0;
  return true;
}

static int fill_description(Tensor* self, const DLTensor* source, uint64_t flags, PyObject* error) {
  self->dl = *source;
  if (!is_numbered(source->device)) self->dl.device.device_id = 0;
  self->flags = flags;
  if (copy_extents(self, source) < 0) return -1;
  if (find_data(self, source) &&
      mtf_fit_strides(&self->dl, self->size, flags, mtf_is_host_readable(self->dl.device))) {
    return 0;
  }
  PyErr_SetString(error, "the strides or the offset lead out of the address space");
  return -1;
}

int mtf_tensor_describe(Tensor* self, const DLTensor* source, uint64_t flags, PyObject* error) {
  if (check_device(source->device, error) < 0 || check_dtype(source->dtype, error) < 0 ||
      check_extents(source, error) < 0) {
    return -1;
  }
  if (!mtf_count(source, flags, &self->size, &self->n_bytes)) {
    PyErr_SetString(error, "the shape is negative somewhere, or larger than memory can be");
    return -1;
  }
  if (check_memory(self, source, error) < 0) return -1;
  self->is_described = fill_description(self, source, flags, error) == 0;
  if (self->is_described) return 0;
  free(self->extents_on_heap);
  self->extents_on_heap = NULL;
  return -1;
}

/* Reads a tuple of at most MTF_MAX_NDIM integers; returns how many, or -1 with an exception. */
static int read_integers(PyObject* sequence, const char* what, int64_t* values) {
  PyObject* tuple = PySequence_Tuple(sequence);
  const Py_ssize_t count = tuple == NULL ? -1 : PyTuple_Size(tuple);
  if (count > MTF_MAX_NDIM) {
    PyErr_Format(PyExc_ValueError, "%s: expected at most %d dimensions, found %zd", what,
                 (int)MTF_MAX_NDIM, count);
  }
  for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); ++i) {
    values[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
  }
  Py_XDECREF(tuple);
  return PyErr_Occurred() ? -1 : (int)count;
}

static int read_extents(PyObject* shape, PyObject* strides, DLTensor* dl) {
  dl->ndim = read_integers(shape, "shape", dl->shape);
  if (dl->ndim < 0) return -1;
  if (strides == Py_None) {
    dl->strides = NULL;
    return 0;
  }
  const int count = read_integers(strides, "strides", dl->strides);
  if (count >= 0 && count != dl->ndim) {
    PyErr_Format(PyExc_ValueError, "%d dimensions in shape, but %d in strides", (int)dl->ndim,
                 count);
  }
  return count == dl->ndim ? 0 : -1;
}

typedef struct {
  PyObject *address, *shape, *strides, *owner;
  int code, bits, lanes, device_type, device_id;
  int read_only, is_copied, is_padded;
} Arguments;

static int parse(PyObject* args, PyObject* keywords, Arguments* a) {
  static char* names[] = {"address",   "shape",     "strides",   "dlpack_dtype", "dlpack_device",
                          "owner",     "read_only", "is_copied", "is_padded",    NULL};
  return PyArg_ParseTupleAndKeywords(args, keywords, "OOO(iii)(ii)O|p$pp:Tensor", names,
                                     &a->address, &a->shape, &a->strides, &a->code, &a->bits,
                                     &a->lanes, &a->device_type, &a->device_id, &a->owner,
                                     &a->read_only, &a->is_copied, &a->is_padded)
             ? 0
             : -1;
}

static int read_dtype(int code, int bits, int lanes, DLDataType* dtype) {
  *dtype = (DLDataType){(uint8_t)code, (uint8_t)bits, (uint16_t)lanes};
  if (code == dtype->code && bits == dtype->bits && lanes == dtype->lanes) return 0;
  PyErr_Format(PyExc_ValueError, "no such DLPack data type: (%d, %d, %d)", code, bits, lanes);
  return -1;
}

/* Reading runs the arguments' own code, which may describe the tensor. */
static int describe(Tensor* self, const Arguments* a) {
  int64_t shape[MTF_MAX_NDIM], strides[MTF_MAX_NDIM];
  DLTensor dl = {
      .shape = shape, .strides = strides, .device = {(DLDeviceType)a->device_type, a->device_id}};
  const uint64_t flags = (a->read_only ? MTF_READ_ONLY : 0) |
                         (a->is_copied ? MTF_IS_COPIED : 0) |
                         (a->is_padded ? MTF_PADDED : 0);
  const unsigned long long address = PyLong_AsUnsignedLongLong(a->address);
  if (address == (unsigned long long)-1 && PyErr_Occurred()) return -1;
  dl.data = (void*)(uintptr_t)address;
  if (read_dtype(a->code, a->bits, a->lanes, &dl.dtype) < 0 ||
      read_extents(a->shape, a->strides, &dl) < 0) {
    return -1;
  }
  if (!self->is_described) return mtf_tensor_describe(self, &dl, flags, PyExc_ValueError);
  PyErr_SetString(PyExc_ValueError, "the tensor is described already; make another one");
  return -1;
}

/* A number that C cannot hold is as impossible as others are. */
static void name_overflow(void) {
  if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
    PyErr_SetString(PyExc_ValueError, "a number is negative, or larger than memory can be");
  }
}

/* tp_init: Tensor(address, shape, strides, dlpack_dtype, dlpack_device, owner, ...). */
static int mtf_tensor_init(PyObject* object, PyObject* args, PyObject* keywords) {
  Tensor* self = (Tensor*)object;
  Arguments a = {0};
  if (parse(args, keywords, &a) < 0 || describe(self, &a) < 0) {
    name_overflow();
    return -1;
  }
  Py_INCREF(a.owner);
  self->owner = a.owner;
  return 0;
}

static int read_elements(PyObject* arguments, DLTensor* dl, int* is_padded) {
  PyObject* shape = NULL;
  int code = 0, bits = 0, lanes = 0;
  return PyArg_ParseTuple(arguments, "O(iii)p:bytes_of_elements", &shape, &code, &bits, &lanes,
                          is_padded) &&
                 read_dtype(code, bits, lanes, &dl->dtype) == 0 &&
                 check_dtype(dl->dtype, PyExc_ValueError) == 0 &&
                 read_extents(shape, Py_None, dl) == 0
             ? 0
             : -1;
}

PyObject* mtf_bytes_of_elements(PyObject* module, PyObject* arguments) {
  (void)module;
  int64_t shape[MTF_MAX_NDIM], size = 0, n_bytes = 0;
  int is_padded = 0;
  DLTensor dl = {.shape = shape};
  if (read_elements(arguments, &dl, &is_padded) < 0) {
    name_overflow();
    return NULL;
  }
  if (mtf_count(&dl, is_padded ? MTF_PADDED : 0, &size, &n_bytes)) {
    return PyLong_FromLongLong(n_bytes);
  }
  PyErr_SetString(PyExc_ValueError, "the shape is negative somewhere, or larger than memory can be");
  return NULL;
}

/* -- the buffer protocol over host memory: memoryview(tensor), numpy.asarray(tensor).
 *
 * The limited API of Python 3.10 has no name for it yet, but its interpreters bear it: the slots are
 * accepted since 3.9, and Python 3.11 froze struct and numbers as they had been since 3.3 -- */

enum { MTF_BF_GETBUFFER = 1, MTF_BF_RELEASEBUFFER = 2 };

/* Py_buffer. */
typedef struct {
  void* buf;
  PyObject* obj;
  Py_ssize_t len;
  Py_ssize_t itemsize;
  int readonly;
  int ndim;
  char* format;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  Py_ssize_t* suboffsets;
  void* internal;
} BufferView;

/* PyBUF_*, as Python 3.11 froze them. */
enum {
  BUF_WRITABLE = 0x1,
  BUF_FORMAT = 0x4,
  BUF_ND = 0x8,
  BUF_STRIDES = 0x10 | BUF_ND,
  BUF_C_CONTIGUOUS = 0x20 | BUF_STRIDES,
  BUF_F_CONTIGUOUS = 0x40 | BUF_STRIDES,
  BUF_ANY_CONTIGUOUS = 0x80 | BUF_STRIDES
};

/* struct's names, by numpy's choice among names of one size. */
static const struct {
  DLDataType dtype;
  const char* format;
} formats[] = {
    {{kDLBool, 8, 1}, "?"},     {{kDLInt, 8, 1}, "b"},       {{kDLInt, 16, 1}, "h"},
    {{kDLInt, 32, 1}, "i"},     {{kDLInt, 64, 1}, "l"},      {{kDLUInt, 8, 1}, "B"},
    {{kDLUInt, 16, 1}, "H"},    {{kDLUInt, 32, 1}, "I"},     {{kDLUInt, 64, 1}, "L"},
    {{kDLFloat, 16, 1}, "e"},   {{kDLFloat, 32, 1}, "f"},    {{kDLFloat, 64, 1}, "d"},
    {{kDLComplex, 64, 1}, "Zf"}, {{kDLComplex, 128, 1}, "Zd"},
};
_Static_assert(sizeof(long) == sizeof(int64_t) && sizeof(Py_ssize_t) == sizeof(int64_t),
               "formats and shapes are those of LP64");

static const char* format_of(DLDataType dtype) {
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; ++i) {
    const DLDataType known = formats[i].dtype;
    if (known.code == dtype.code && known.bits == dtype.bits && known.lanes == dtype.lanes) {
      return formats[i].format;
    }
  }
  return NULL;
}

static bool asks(int flags, int what) { return (flags & what) == what; }

static bool is_layout_served(const DLTensor* dl, int flags) {
  if (asks(flags, BUF_C_CONTIGUOUS) || !asks(flags, BUF_STRIDES)) return mtf_is_c_contiguous(dl);
  if (asks(flags, BUF_F_CONTIGUOUS)) return is_f_contiguous(dl);
  if (asks(flags, BUF_ANY_CONTIGUOUS)) return mtf_is_c_contiguous(dl) || is_f_contiguous(dl);
  return true;
}

static int refuse_view(const char* why) {
  PyErr_SetString(PyExc_BufferError, why);
  return -1;
}

static int check_view(const Tensor* self, int flags) {
  const bool is_read_only =
      self->is_mutability_unknown || (self->flags & MTF_READ_ONLY) != 0;
  if (!mtf_is_host_readable(self->dl.device)) return refuse_view("the memory is not the host's");
  if (is_read_only && asks(flags, BUF_WRITABLE)) return refuse_view("the memory is read-only");
  if (format_of(self->dl.dtype) == NULL) {
    return refuse_view("Python's buffers have no format for such elements; use DLPack");
  }
  return is_layout_served(&self->dl, flags) ? 0 : refuse_view("the memory is not contiguous as asked");
}

/* Strides in bytes, for free(); the memory that they are in is the view's `internal`. */
static int add_strides(const Tensor* self, BufferView* view) {
  if (self->dl.ndim == 0) return 0;
  view->internal = view->strides = malloc((size_t)self->dl.ndim * sizeof(Py_ssize_t));
  if (view->strides == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  for (int32_t i = 0; i < self->dl.ndim; ++i) {
    view->strides[i] = self->dl.strides[i] * view->itemsize;
  }
  return 0;
}

static int fill_view(Tensor* self, BufferView* view, int flags) {
  *view = (BufferView){0};
  view->buf = self->dl.data;
  view->len = self->n_bytes;
  view->itemsize = mtf_item_size(self->dl.dtype, self->flags);
  view->readonly = self->is_mutability_unknown || (self->flags & MTF_READ_ONLY) != 0;
  view->ndim = asks(flags, BUF_ND) ? self->dl.ndim : 1;
  if (asks(flags, BUF_FORMAT)) view->format = (char*)format_of(self->dl.dtype);
  if (asks(flags, BUF_ND)) view->shape = (Py_ssize_t*)self->dl.shape;
  return asks(flags, BUF_STRIDES) ? add_strides(self, view) : 0;
}

static int get_buffer(PyObject* object, BufferView* view, int flags) {
  static char nothing; /* of an empty tensor: views want an address */
  Tensor* self = mtf_tensor_from(object);
  view->obj = NULL;
  if (self == NULL || check_view(self, flags) < 0 || mtf_hold_when_done(self, Py_None) < 0) return -1;
  if (fill_view(self, view, flags) < 0) {
    mtf_let_go(self);
    return -1;
  }
  if (view->buf == NULL) view->buf = &nothing;
  Py_INCREF(object);
  view->obj = object;
  return 0;
}

static void release_buffer(PyObject* self, BufferView* view) {
  free(view->internal);
  mtf_let_go((Tensor*)self);
}

/* -- the type -- */

static int visit_references(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(((Tensor*)object)->owner);
  return 0;
}

static PyObject* tuple_of(const int64_t* values, int32_t count) {
  PyObject* tuple = PyTuple_New(count);
  for (int32_t i = 0; tuple != NULL && i < count; ++i) {
    PyObject* value = PyLong_FromLongLong(values[i]);
    if (value == NULL) Py_CLEAR(tuple);
    if (value != NULL) PyTuple_SetItem(tuple, i, value);
  }
  return tuple;
}

/* Tells the getters apart. */
enum { SHAPE, STRIDES, NDIM, SIZE, NBYTES, ADDRESS, ELEMENT, DEVICE, READ_ONLY, COPIED, PADDED,
       EXPORTS, OWNER, ENDED };

static PyObject* element_of(DLDataType dtype) {
  const int64_t numbers[] = {dtype.code, dtype.bits, dtype.lanes};
  return tuple_of(numbers, 3);
}

static PyObject* owner_of(const Tensor* self) {
  PyObject* owner = self->owner == NULL ? Py_None : self->owner;
  Py_INCREF(owner);
  return owner;
}

static PyObject* get(PyObject* object, void* which) {
  const Tensor* self = mtf_tensor_from(object);
  if (self == NULL) return NULL;
  switch ((int)(intptr_t)which) {
    case SHAPE: return tuple_of(self->dl.shape, self->dl.ndim);
    case STRIDES: return tuple_of(self->dl.strides, self->dl.ndim);
    case NDIM: return PyLong_FromLong(self->dl.ndim);
    case SIZE: return PyLong_FromLongLong(self->size);
    case NBYTES: return PyLong_FromLongLong(self->n_bytes);
    case ADDRESS: return PyLong_FromVoidPtr(self->dl.data);
    case ELEMENT: return element_of(self->dl.dtype);
    case DEVICE: return mtf_dlpack_device(object, NULL);
    case READ_ONLY:
      return PyBool_FromLong(self->is_mutability_unknown ||
                             (self->flags & MTF_READ_ONLY) != 0);
    case COPIED: return PyBool_FromLong((self->flags & MTF_IS_COPIED) != 0);
    case PADDED: return PyBool_FromLong((self->flags & MTF_PADDED) != 0);
    case EXPORTS: return PyLong_FromSsize_t(self->n_exports);
    case ENDED: return PyBool_FromLong(self->is_ended);
    default: return owner_of(self);
  }
}

static PyObject* get_data_type(PyObject* object, void* unused) {
  (void)unused;
  return PyLong_FromLong(((Tensor*)object)->data_type);
}

static int set_data_type(PyObject* object, PyObject* value, void* unused) {
  (void)unused;
  if (value == NULL) return PyErr_SetString(PyExc_AttributeError, "_data_type stays"), -1;
  const long number = PyLong_AsLong(value);
  if (number == -1 && PyErr_Occurred()) return -1;
  ((Tensor*)object)->data_type = (int32_t)number;
  return 0;
}

static PyObject* get_needs_sync(PyObject* object, void* unused) {
  (void)unused;
  return PyBool_FromLong(((Tensor*)object)->needs_sync);
}

static int set_needs_sync(PyObject* object, PyObject* value, void* unused) {
  (void)unused;
  const int truth = value == NULL ? 0 : PyObject_IsTrue(value);
  if (truth >= 0) ((Tensor*)object)->needs_sync = truth != 0 || ((Tensor*)object)->is_ended;
  return truth < 0 ? -1 : 0;
}

static PyObject* before_export(PyObject* self, PyObject* stream) {
  (void)self;
  (void)stream;
  Py_RETURN_NONE;
}

#define GETTER(name, which) {name, get, NULL, NULL, (void*)(intptr_t)(which)}

static PyGetSetDef getters[] = {
    GETTER("shape", SHAPE),
    GETTER("strides", STRIDES),
    GETTER("ndim", NDIM),
    GETTER("size", SIZE),
    GETTER("nbytes", NBYTES),
    GETTER("address", ADDRESS),
    GETTER("dlpack_dtype", ELEMENT),
    GETTER("dlpack_device", DEVICE),
    GETTER("read_only", READ_ONLY),
    GETTER("is_copied", COPIED),
    GETTER("is_padded", PADDED),
    GETTER("owner", OWNER),
    GETTER("_n_exports", EXPORTS),
    GETTER("_is_ended", ENDED),
    {"_needs_sync", get_needs_sync, set_needs_sync, NULL, NULL},
    {"_data_type", get_data_type, set_data_type, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))mtf_dlpack, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"__dlpack_device__", mtf_dlpack_device, METH_NOARGS, NULL},
    {"_before_export", before_export, METH_O, NULL},
    {"_export_elsewhere", mtf_export_elsewhere, METH_VARARGS, NULL},
    {"_end_memory", mtf_end_memory, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_init, mtf_tensor_init},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, mtf_tensor_deallocate},
    {Py_tp_traverse, visit_references}, /* no tp_clear: a cycle leads through something that has one */
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {MTF_BF_GETBUFFER, get_buffer},
    {MTF_BF_RELEASEBUFFER, release_buffer},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "modular_tf.native._dlpack.Tensor",
    .basicsize = sizeof(Tensor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

PyObject* mtf_tensor_type_new(void) { return PyType_FromSpec(&spec); }
