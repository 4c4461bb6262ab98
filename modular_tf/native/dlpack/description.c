/* From arguments, or a producer's struct, to a checked description. */
#include <stdlib.h>
#include <string.h>

#include "tensor.h"

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

static int fill(Tensor* self, const DLTensor* source, uint64_t flags, PyObject* error) {
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
  self->is_described = fill(self, source, flags, error) == 0;
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

int mtf_tensor_init(PyObject* object, PyObject* args, PyObject* keywords) {
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
