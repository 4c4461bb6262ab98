#include "tensor.h"

#include <stdlib.h>
#include <string.h>

/* -- elements of less than a byte: packed, as DLPack has them, and padded to whole bytes -- */

/* Bits on their way from one layout to the other, the next one lowest. */
typedef struct {
  unsigned bits;
  int count;
} Bits;

static unsigned mask_of(int width) { return (1U << width) - 1; }

/* A lane is whole bytes and, in its last byte, the bits that are left. */
static int bytes_of_lane(DLDataType dtype) { return (dtype.bits + 7) / 8; }

static int width_of_byte(DLDataType dtype, int byte) {
  return byte < dtype.bits / 8 ? 8 : dtype.bits % 8;
}

/* Whether padding changes how elements lie. */
static bool has_two_layouts(DLDataType dtype) { return dtype.bits % 8 != 0; }

static const uint8_t* read_bits(Bits* bits, int width, const uint8_t* packed) {
  if (bits->count >= width) return packed;
  bits->bits |= (unsigned)*packed << bits->count;
  bits->count += 8;
  return packed + 1;
}

static void drop_bits(Bits* bits, int width) {
  bits->bits >>= width;
  bits->count -= width;
}

/* Copies `size` elements from packed to padded, or back. Packed, the first lane of the first element
 * is in the lowest bits of the first byte; padded, each lane starts at a byte, and the bits above it
 * are written as 0 and read as nothing. Neither has gaps, and `to` has room for all. */
static void unpack(DLDataType dtype, int64_t size, const uint8_t* packed, uint8_t* to) {
  Bits bits = {0, 0};
  for (int64_t lane = 0; lane < size * dtype.lanes; ++lane) {
    for (int byte = 0; byte < bytes_of_lane(dtype); ++byte) {
      const int width = width_of_byte(dtype, byte);
      packed = read_bits(&bits, width, packed);
      *to++ = (uint8_t)(bits.bits & mask_of(width));
      drop_bits(&bits, width);
    }
  }
}

static void pack(DLDataType dtype, int64_t size, const uint8_t* padded, uint8_t* to) {
  Bits bits = {0, 0};
  for (int64_t lane = 0; lane < size * dtype.lanes; ++lane) {
    for (int byte = 0; byte < bytes_of_lane(dtype); ++byte) {
      const int width = width_of_byte(dtype, byte);
      bits.bits |= (*padded++ & mask_of(width)) << bits.count;
      bits.count += width;
      if (bits.count >= 8) {
        *to++ = (uint8_t)bits.bits;
        drop_bits(&bits, 8);
      }
    }
  }
  if (bits.count > 0) *to = (uint8_t)bits.bits;
}

/* -- copies -- */

/* Without the GIL. */
static void copy_bytes(const Tensor* self, bool is_other_layout, char* to) {
  const int64_t item = mtf_item_size(self->dl.dtype, self->flags);
  const bool is_padded = (self->flags & MTF_PADDED) != 0;
  if (is_other_layout && is_padded) {
    pack(self->dl.dtype, self->size, self->dl.data, (uint8_t*)to);
  } else if (is_other_layout) {
    unpack(self->dl.dtype, self->size, self->dl.data, (uint8_t*)to);
  } else if (item != 0) {
    mtf_copy_elements(&self->dl, (size_t)item, to);
  } else if (self->n_bytes > 0) {
    memcpy(to, self->dl.data, (size_t)self->n_bytes);
  }
}

/* Bits are copied, packed and unpacked only as they lie. */
static int check_compact(const Tensor* self, bool is_other_layout) {
  const bool is_by_bits = is_other_layout || mtf_item_size(self->dl.dtype, self->flags) == 0;
  if (!is_by_bits || mtf_is_c_contiguous(&self->dl)) return 0;
  PyErr_SetString(PyExc_BufferError,
                  "elements that share bytes can be copied only where they are compact");
  return -1;
}

/* New memory for a copy, described; its bytes are still to be written. */
static Tensor* new_host_tensor(const Tensor* self, uint64_t padded) {
  Tensor* copy = mtf_tensor_new();
  if (copy == NULL) return NULL;
  DLTensor dl = self->dl;
  int64_t size = 0, n_bytes = 0;
  dl.strides = NULL;
  dl.device = (DLDevice){kDLCPU, 0};
  const bool is_countable = mtf_count(&dl, padded, &size, &n_bytes);
  dl.data = is_countable ? mtf_aligned_memory(n_bytes) : NULL;
  copy->managed = dl.data;
  copy->release = free;
  if (dl.data == NULL) PyErr_NoMemory();
  if (dl.data == NULL ||
      mtf_tensor_describe(copy, &dl, padded | MTF_IS_COPIED, PyExc_BufferError) < 0) {
    Py_DECREF((PyObject*)copy);
    return NULL;
  }
  return copy;
}

/* A compact copy in new host memory, with IS_COPIED, whose elements are padded if `padded` is
 * MTF_PADDED and packed if it is 0. The GIL is released while bytes are copied, so
 * that the caller has to hold the memory. NULL with an exception. */
static Tensor* mtf_tensor_host_copy(Tensor* self, uint64_t padded) {
  const bool is_other_layout = padded != (self->flags & MTF_PADDED) &&
                               has_two_layouts(self->dl.dtype);
  if (check_compact(self, is_other_layout) < 0) return NULL;
  Tensor* copy = new_host_tensor(self, padded);
  if (copy == NULL) return NULL;
  PyThreadState* thread = PyEval_SaveThread();
  copy_bytes(self, is_other_layout, copy->managed);
  PyEval_RestoreThread(thread);
  return copy;
}

PyObject* mtf_repacked(PyObject* module, PyObject* arguments) {
  (void)module;
  PyObject* object = NULL;
  int is_padded = 0;
  if (!PyArg_ParseTuple(arguments, "Op:repacked", &object, &is_padded)) return NULL;
  Tensor* self = mtf_tensor_from(object);
  if (self == NULL || mtf_hold_when_done(self, Py_None) < 0) return NULL;
  Tensor* copy = NULL;
  if (mtf_is_host_readable(self->dl.device)) {
    copy = mtf_tensor_host_copy(self, is_padded ? MTF_PADDED : 0);
  } else {
    PyErr_SetString(PyExc_BufferError, "only host memory can be packed or unpacked");
  }
  mtf_let_go(self);
  return (PyObject*)copy;
}

/* -- what a consumer gets: managed tensors of both kinds, each of which keeps a Tensor alive -- */

/* Names of capsules: compared by content, but kept by address, so they live as long as we do. */
static const char mtf_legacy_name[] = "dltensor";
static const char mtf_used_legacy_name[] = "used_dltensor";
static const char mtf_versioned_name[] = "dltensor_versioned";
static const char mtf_used_versioned_name[] = "used_dltensor_versioned";

/* Leaks if Python cannot run any more. */
static void release(void* managed, Tensor* tensor) {
  if (!mtf_can_take_gil()) return;
  const PyGILState_STATE state = PyGILState_Ensure();
  free(managed);
  mtf_let_go(tensor);
  PyGILState_Release(state);
}

static void delete_versioned(DLManagedTensorVersioned* managed) {
  release(managed, managed->manager_ctx);
}

static void delete_legacy(DLManagedTensor* managed) { release(managed, managed->manager_ctx); }

static bool mtf_is_our_versioned(const DLManagedTensorVersioned* managed) {
  return managed->deleter == delete_versioned;
}

/* Tells whether a managed tensor is one of ours. */
static bool mtf_is_our_legacy(const DLManagedTensor* managed) { return managed->deleter == delete_legacy; }

/* One block for a managed tensor and its shape and strides, which consumers may keep longer than
 * the Tensor has its present ones. */
static void* new_block(const Tensor* self, size_t size_of_managed) {
  void* block = malloc(size_of_managed + 2 * (size_t)self->dl.ndim * sizeof(int64_t));
  if (block == NULL) PyErr_NoMemory();
  return block;
}

/* Returns whose memory it is, in use from now on. */
static Tensor* fill(Tensor* self, DLTensor* dl, int64_t* extents) {
  const size_t n = (size_t)self->dl.ndim;
  *dl = self->dl;
  if (n > 0) {
    memcpy(extents, self->dl.shape, n * sizeof(int64_t));
    memcpy(extents + n, self->dl.strides, n * sizeof(int64_t));
    dl->shape = extents;
    dl->strides = extents + n;
  }
  Tensor* root = mtf_root(self);
  mtf_hold(root);
  return root;
}

/* A managed tensor, which is a use of the memory. Its deleter may run on any thread, with or without
 * the GIL; once the interpreter has ended, or ends on another thread, it leaks what only Python can
 * free. NULL with an exception. */
static DLManagedTensorVersioned* mtf_managed_versioned(Tensor* self, uint64_t flags) {
  DLManagedTensorVersioned* managed = new_block(self, sizeof *managed);
  if (managed == NULL) return NULL;
  managed->version = (DLPackVersion){DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed->deleter = delete_versioned;
  managed->flags = flags | (self->is_mutability_unknown ? MTF_READ_ONLY : 0);
  managed->manager_ctx = fill(self, &managed->dl_tensor, (int64_t*)(managed + 1));
  return managed;
}

static DLManagedTensor* managed_legacy(Tensor* self) {
  DLManagedTensor* managed = new_block(self, sizeof *managed);
  if (managed == NULL) return NULL;
  managed->deleter = delete_legacy;
  managed->manager_ctx = fill(self, &managed->dl_tensor, (int64_t*)(managed + 1));
  return managed;
}

static void release_versioned(void* pointer) {
  DLManagedTensorVersioned* managed = pointer;
  if (managed->deleter != NULL) managed->deleter(managed);
}

static void release_legacy(void* pointer) {
  DLManagedTensor* managed = pointer;
  if (managed->deleter != NULL) managed->deleter(managed);
}

/* Frees what was not taken over, and keeps an exception that is pending. */
static void discard(void* managed, void (*release_it)(void*)) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  release_it(managed);
  PyErr_Restore(type, value, traceback);
}

/* A consumed capsule bears another name. */
static void discard_unused(PyObject* capsule, const char* name, void (*release_it)(void*)) {
  if (PyCapsule_IsValid(capsule, name)) discard(PyCapsule_GetPointer(capsule, name), release_it);
}

static void destroy_versioned_capsule(PyObject* capsule) {
  discard_unused(capsule, mtf_versioned_name, release_versioned);
}

static void destroy_legacy_capsule(PyObject* capsule) {
  discard_unused(capsule, mtf_legacy_name, release_legacy);
}

static PyObject* mtf_versioned_capsule(Tensor* self, uint64_t flags) {
  DLManagedTensorVersioned* managed = mtf_managed_versioned(self, flags);
  if (managed == NULL) return NULL;
  PyObject* capsule = PyCapsule_New(managed, mtf_versioned_name, destroy_versioned_capsule);
  if (capsule == NULL) delete_versioned(managed);
  return capsule;
}

/* A capsule that frees the managed tensor unless it is consumed. NULL with an exception. */
static PyObject* mtf_legacy_capsule(Tensor* self) {
  DLManagedTensor* managed = managed_legacy(self);
  if (managed == NULL) return NULL;
  PyObject* capsule = PyCapsule_New(managed, mtf_legacy_name, destroy_legacy_capsule);
  if (capsule == NULL) delete_legacy(managed);
  return capsule;
}

/* -- __dlpack__ -- */

/* What `__dlpack__` may be asked for; None where it is not. */
enum { MTF_STREAM, MTF_MAX_VERSION, MTF_DL_DEVICE, MTF_COPY, MTF_KEYWORDS };

static const char* const keyword_texts[MTF_KEYWORDS] = {"stream", "max_version", "dl_device",
                                                        "copy"};
static PyObject* keyword_names[MTF_KEYWORDS];

int mtf_export_prepare(void) {
  for (int i = 0; i < MTF_KEYWORDS; ++i) {
    keyword_names[i] = PyUnicode_InternFromString(keyword_texts[i]);
    if (keyword_names[i] == NULL) return -1;
  }
  return 0;
}

/* Names in calls are interned nearly always, so that addresses tell; a built one is compared. */
static int find_keyword(PyObject* name) {
  for (int i = 0; i < MTF_KEYWORDS; ++i) {
    if (name == keyword_names[i]) return i;
  }
  for (int i = 0; i < MTF_KEYWORDS; ++i) {
    if (PyUnicode_CompareWithASCIIString(name, keyword_texts[i]) == 0) return i;
  }
  PyErr_Format(PyExc_TypeError, "__dlpack__() got an unexpected keyword argument %R", name);
  return -1;
}

static int read_request(PyObject* const* arguments, Py_ssize_t count, PyObject* keywords,
                        PyObject** request) {
  const Py_ssize_t n_keywords = keywords == NULL ? 0 : PyTuple_Size(keywords);
  if (count != 0) {
    PyErr_SetString(PyExc_TypeError, "__dlpack__() takes keyword arguments only");
    return -1;
  }
  for (int i = 0; i < MTF_KEYWORDS; ++i) request[i] = Py_None;
  for (Py_ssize_t i = 0; i < n_keywords; ++i) {
    const int found = find_keyword(PyTuple_GetItem(keywords, i));
    if (found < 0) return -1;
    request[found] = arguments[i];
  }
  return 0;
}

/* Reads a pair of integers. Not a TypeError: consumers take that for a call with fewer keywords. */
static int read_pair(PyObject* pair, const char* what, long* first, long* second) {
  if (PyTuple_Check(pair) && PyTuple_Size(pair) == 2) {
    *first = PyLong_AsLong(PyTuple_GetItem(pair, 0));
    if (!PyErr_Occurred()) *second = PyLong_AsLong(PyTuple_GetItem(pair, 1));
    if (!PyErr_Occurred()) return 0;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1; /* an interrupt, in its __index__ */
    PyErr_Clear();
  }
  PyErr_Format(PyExc_ValueError, "%s must be a tuple of two integers, not %R", what, pair);
  return -1;
}

/* Whether a consumer understands versioned structs; -1 with an exception. */
static int wants_versioned(PyObject* max_version) {
  long major = 0, minor = 0;
  if (max_version == Py_None) return 0;
  if (read_pair(max_version, "max_version", &major, &minor) < 0) return -1;
  return major >= DLPACK_MAJOR_VERSION;
}

static int read_device(const Tensor* self, PyObject* dl_device, DLDevice* wanted) {
  long type = 0, id = 0;
  *wanted = self->dl.device;
  if (dl_device == Py_None) return 0;
  if (read_pair(dl_device, "dl_device", &type, &id) < 0) return -1;
  if (type != (int32_t)type || id != (int32_t)id) {
    PyErr_Format(PyExc_ValueError, "dl_device is out of range: %R", dl_device);
    return -1;
  }
  *wanted = (DLDevice){(int32_t)type, (int32_t)id};
  return 0;
}

static bool is_same_device(DLDevice a, DLDevice b) {
  return a.device_type == b.device_type && a.device_id == b.device_id;
}

/* Which integers name a stream: 0 is ambiguous on CUDA, 1 and 2 mean nothing on ROCm. */
static bool is_stream_number(int32_t device_type, long long number) {
  if (device_type == kDLCUDA || device_type == kDLCUDAManaged) return number >= -1 && number != 0;
  if (device_type == kDLROCM) return number >= -1 && number != 1 && number != 2;
  return device_type != kDLExtDev;
}

static int refuse_stream(DLDevice device, PyObject* stream) {
  PyErr_Format(PyExc_ValueError, "stream %R means nothing on DLPack device (%d, %d)%s", stream,
               (int)device.device_type, (int)device.device_id,
               mtf_is_host_readable(device) ? ": host memory has none, so it must be None" : "");
  return -1;
}

static int check_stream(DLDevice device, PyObject* stream) {
  if (stream == Py_None) return 0;
  if (mtf_is_host_readable(device)) return refuse_stream(device, stream);
  if (!PyLong_Check(stream)) return 0; /* an object of the device's own; its hook judges it */
  const long long number = PyLong_AsLongLong(stream);
  if (number == -1 && PyErr_Occurred()) return -1;
  return is_stream_number(device.device_type, number) ? 0 : refuse_stream(device, stream);
}

/* The struct that says all that must be said, or a BufferError. */
static PyObject* capsule_of(Tensor* self, bool is_versioned, uint64_t flags) {
  if (is_versioned) return mtf_versioned_capsule(self, flags);
  if ((flags & (MTF_READ_ONLY | MTF_PADDED)) == 0) {
    return mtf_legacy_capsule(self);
  }
  PyErr_SetString(PyExc_BufferError,
                  (flags & MTF_READ_ONLY) != 0
                      ? "the memory is read-only, which needs max_version of (1, 0) or more"
                      : "the elements are padded, which needs max_version of (1, 0) or more");
  return NULL;
}

static PyObject* refuse_elsewhere(const Tensor* self, DLDevice wanted) {
  return PyErr_Format(PyExc_BufferError, "memory of DLPack device (%d, %d) cannot go to (%d, %d)",
                      (int)self->dl.device.device_type, (int)self->dl.device.device_id,
                      (int)wanted.device_type, (int)wanted.device_id);
}

/* The base class: another name for host memory without a copy, or a copy in host memory. */
static Tensor* elsewhere(Tensor* self, DLDevice wanted, int copy) {
  const DLDevice host = {kDLCPU, 0};
  const bool is_moved = !is_same_device(self->dl.device, wanted);
  if (!mtf_is_host_readable(self->dl.device) || !is_same_device(wanted, host)) {
    refuse_elsewhere(self, wanted);
    return NULL;
  }
  if (is_moved && copy != 1) return mtf_tensor_view_on(self, host);
  if (copy != 0) return mtf_tensor_host_copy(self, self->flags & MTF_PADDED);
  PyErr_SetString(PyExc_BufferError,
                  "strides are negative, which consumers do not bear, and copy=False was asked for");
  return NULL;
}

/* -1: only if it is needed. */
static int read_copy(PyObject* copy) { return copy == Py_None ? -1 : PyObject_IsTrue(copy); }

PyObject* mtf_export_elsewhere(PyObject* object, PyObject* arguments) {
  PyObject *stream, *dl_device, *copy;
  DLDevice wanted;
  Tensor* self = mtf_tensor_from(object);
  if (self == NULL ||
      !PyArg_ParseTuple(arguments, "OOO:_export_elsewhere", &stream, &dl_device, &copy)) {
    return NULL;
  }
  const int truth = read_copy(copy);
  if (PyErr_Occurred() || read_device(self, dl_device, &wanted) < 0 ||
      check_stream(wanted, stream) < 0 || mtf_hold_when_done(self, Py_None) < 0) {
    return NULL;
  }
  Tensor* result = elsewhere(self, wanted, truth);
  mtf_let_go(self);
  return (PyObject*)result;
}

/* What a subclass returned is used only if it is a tensor with memory, and what was asked for. */
static int check_elsewhere(const Tensor* self, PyObject* result, DLDevice wanted) {
  const Tensor* tensor = (Tensor*)result;
  if (!PyObject_TypeCheck(result, mtf_tensor_type) || !tensor->is_described || tensor->is_ended) {
    PyErr_Format(PyExc_BufferError,
                 "%R: _export_elsewhere returned %R, expected a tensor that has memory",
                 Py_TYPE((PyObject*)self), Py_TYPE(result));
    return -1;
  }
  if (!is_same_device(tensor->dl.device, wanted)) {
    PyErr_Format(PyExc_BufferError, "the export went to DLPack device (%d, %d) instead of (%d, %d)",
                 (int)tensor->dl.device.device_type, (int)tensor->dl.device.device_id,
                 (int)wanted.device_type, (int)wanted.device_id);
    return -1;
  }
  if (!mtf_has_negative_stride(&tensor->dl)) return 0;
  PyErr_Format(PyExc_BufferError, "%R: _export_elsewhere returned a tensor with negative strides",
               Py_TYPE((PyObject*)self));
  return -1;
}

static Tensor* hold_elsewhere(Tensor* self, PyObject* const* request, DLDevice wanted) {
  PyObject* result = PyObject_CallMethod((PyObject*)self, "_export_elsewhere", "OOO",
                                         request[MTF_STREAM], request[MTF_DL_DEVICE],
                                         request[MTF_COPY]);
  if (result == NULL) return NULL;
  if (check_elsewhere(self, result, wanted) < 0) {
    Py_DECREF(result);
    return NULL;
  }
  mtf_hold((Tensor*)result);
  Py_DECREF(result);
  return (Tensor*)result;
}

/* 1: as it is; 0: a copy, or memory of another device; -1 with an exception. */
static int is_exported_as_it_is(const Tensor* self, PyObject* const* request, DLDevice* wanted) {
  const int copy = read_copy(request[MTF_COPY]);
  if (PyErr_Occurred() || read_device(self, request[MTF_DL_DEVICE], wanted) < 0 ||
      check_stream(*wanted, request[MTF_STREAM]) < 0) {
    return -1;
  }
  return copy != 1 && is_same_device(*wanted, self->dl.device) &&
         !mtf_has_negative_stride(&self->dl);
}

/* Chooses what is exported: the tensor itself, once the work in flight is done, or what its
 * `_export_elsewhere` returns. A tensor in use, for mtf_let_go; NULL with an exception. */
static Tensor* mtf_hold_exported(Tensor* self, PyObject* const* request, uint64_t* flags) {
  DLDevice wanted;
  const int as_it_is = is_exported_as_it_is(self, request, &wanted);
  if (as_it_is < 0) return NULL;
  if (as_it_is != 0) {
    *flags = self->flags & ~MTF_IS_COPIED;
    return mtf_hold_when_done(self, request[MTF_STREAM]) < 0 ? NULL : self;
  }
  mtf_hold(self);
  Tensor* exported = hold_elsewhere(self, request, wanted);
  mtf_let_go(self);
  if (exported != NULL) *flags = exported->flags;
  return exported;
}

PyObject* mtf_dlpack(PyObject* object, PyObject* const* arguments, Py_ssize_t count,
                     PyObject* keywords) {
  PyObject* request[MTF_KEYWORDS];
  uint64_t flags = 0;
  Tensor* self = (Tensor*)object;
  if (!self->is_described) self = mtf_tensor_from(object);
  if (self == NULL || read_request(arguments, count, keywords, request) < 0) return NULL;
  const int is_versioned = wants_versioned(request[MTF_MAX_VERSION]);
  if (is_versioned < 0) return NULL;
  Tensor* exported = mtf_hold_exported(self, request, &flags);
  if (exported == NULL) return NULL;
  PyObject* capsule = capsule_of(exported, is_versioned != 0, flags);
  mtf_let_go(exported);
  return capsule;
}

PyObject* mtf_dlpack_device(PyObject* object, PyObject* unused) {
  (void)unused;
  const Tensor* self = mtf_tensor_from(object);
  if (self == NULL) return NULL;
  PyObject* type = PyLong_FromLong(self->dl.device.device_type);
  PyObject* id = PyLong_FromLong(self->dl.device.device_id);
  PyObject* pair = type == NULL || id == NULL ? NULL : PyTuple_Pack(2, type, id);
  Py_XDECREF(type);
  Py_XDECREF(id);
  return pair;
}

/* Describes what is to be adopted; kDLExtDev means another device to every maker, so that a foreign
 * number proves nothing. */
static int describe(Tensor* self, const DLTensor* dl, uint64_t flags, bool is_ours) {
  if (dl->device.device_type != kDLExtDev || is_ours) {
    return mtf_tensor_describe(self, dl, flags, PyExc_BufferError);
  }
  PyErr_Format(PyExc_BufferError,
               "device (12, %d), kDLExtDev, of another producer has no meaning here; ask that "
               "producer for host memory",
               (int)dl->device.device_id);
  return -1;
}

static bool is_of_our_major(const DLManagedTensorVersioned* managed) {
  return managed->version.major == DLPACK_MAJOR_VERSION;
}

static int describe_versioned(Tensor* self, const DLManagedTensorVersioned* managed) {
  const uint64_t known = MTF_READ_ONLY | MTF_IS_COPIED | MTF_PADDED;
  if (!is_of_our_major(managed)) {
    PyErr_Format(PyExc_BufferError,
                 "expected DLPack %d, found %u.%u; ask the producer for max_version=(%d, %d)",
                 (int)DLPACK_MAJOR_VERSION, (unsigned)managed->version.major,
                 (unsigned)managed->version.minor, (int)DLPACK_MAJOR_VERSION,
                 (int)DLPACK_MINOR_VERSION);
    return -1;
  }
  return describe(self, &managed->dl_tensor, managed->flags & known, mtf_is_our_versioned(managed));
}

/* Of one of ours only the tensor is kept that has the memory: otherwise tensors that come back again
 * and again would form a chain. The managed tensor's use of the memory becomes the view's. */
static void become_view(Tensor* self, PyObject* root, void* managed) {
  self->owner = root;
  self->is_view = true;
  free(managed);
}

static void take_over_versioned(Tensor* self, DLManagedTensorVersioned* managed) {
  if (mtf_is_our_versioned(managed)) {
    become_view(self, managed->manager_ctx, managed);
  } else {
    self->managed = managed;
    self->release = release_versioned;
  }
}

static void take_over_legacy(Tensor* self, DLManagedTensor* managed) {
  self->is_mutability_unknown = true;
  if (mtf_is_our_legacy(managed)) {
    become_view(self, managed->manager_ctx, managed);
  } else {
    self->managed = managed;
    self->release = release_legacy;
  }
}

/* A tensor that owns the managed one; NULL with an exception, and then the caller still does. */
static Tensor* mtf_adopt_versioned(DLManagedTensorVersioned* managed) {
  Tensor* self = mtf_tensor_new();
  if (self == NULL) return NULL;
  if (describe_versioned(self, managed) < 0) {
    Py_DECREF((PyObject*)self);
    return NULL;
  }
  take_over_versioned(self, managed);
  return self;
}

/* Of a layout that is unknown here only the deleter can be used, and is to be. Consumed first: making
 * the error may run the collector, and so code that consumes the capsule. */
static int give_back(Tensor* self, DLManagedTensorVersioned* managed, PyObject* capsule) {
  if (PyCapsule_SetName(capsule, mtf_used_versioned_name) < 0) return -1;
  describe_versioned(self, managed);
  discard(managed, release_versioned);
  return -1;
}

/* 1 if the capsule was of this kind and is consumed, 0 if it is of another, -1 with an exception. */
static int consume_versioned(Tensor* self, PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, mtf_versioned_name)) return 0;
  DLManagedTensorVersioned* managed = PyCapsule_GetPointer(capsule, mtf_versioned_name);
  if (!is_of_our_major(managed)) return give_back(self, managed, capsule);
  if (describe_versioned(self, managed) < 0 ||
      PyCapsule_SetName(capsule, mtf_used_versioned_name) < 0) {
    return -1;
  }
  take_over_versioned(self, managed);
  return 1;
}

static int consume_legacy(Tensor* self, PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, mtf_legacy_name)) return 0;
  DLManagedTensor* managed = PyCapsule_GetPointer(capsule, mtf_legacy_name);
  if (describe(self, &managed->dl_tensor, 0, mtf_is_our_legacy(managed)) < 0 ||
      PyCapsule_SetName(capsule, mtf_used_legacy_name) < 0) {
    return -1;
  }
  take_over_legacy(self, managed);
  return 1;
}

static int refuse(PyObject* capsule) {
  const bool is_used = PyCapsule_IsValid(capsule, mtf_used_versioned_name) ||
                       PyCapsule_IsValid(capsule, mtf_used_legacy_name);
  PyErr_Format(PyExc_ValueError, "expected a DLPack capsule that nobody consumed, found %s%R",
               is_used ? "a consumed one: " : "", capsule);
  return -1;
}

PyObject* mtf_consume(PyObject* module, PyObject* capsule) {
  (void)module;
  /* Allocated first: that may run the collector, and so code that consumes the capsule. */
  Tensor* self = mtf_tensor_new();
  if (self == NULL) return NULL;
  int consumed = consume_versioned(self, capsule);
  if (consumed == 0) consumed = consume_legacy(self, capsule);
  if (consumed == 0) consumed = refuse(capsule);
  if (consumed < 0) Py_CLEAR(self);
  return (PyObject*)self;
}

/* -- __dlpack_c_exchange_api__: our own table, and those of other types -- */

static const char table_name[] = "dlpack_exchange_api";
static PyObject* attribute_name;    /* interned */
static PyObject* no_order;          /* the stream -1: the consumer orders the work itself */
static PyObject* work_stream_query; /* of mtf_set_work_stream_query; or NULL */

typedef void (*SetError)(void* context, const char* kind, const char* message);

static int report(SetError set_error, void* context, const char* kind, const char* message) {
  if (set_error != NULL) set_error(context, kind, message);
  return -1;
}

static void delete_allocated(DLManagedTensorVersioned* managed) {
  free(managed->manager_ctx);
  free(managed);
}

/* Fills a block whose extents follow it. */
static void describe_allocated(DLManagedTensorVersioned* managed, const DLTensor* prototype,
                               void* memory, bool is_empty) {
  int64_t* extents = (int64_t*)(managed + 1);
  const int32_t n = prototype->ndim;
  managed->version = (DLPackVersion){DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed->manager_ctx = memory;
  managed->deleter = delete_allocated;
  managed->dl_tensor = (DLTensor){.data = is_empty ? NULL : memory,
                                  .device = {kDLCPU, 0},
                                  .ndim = n,
                                  .dtype = prototype->dtype,
                                  .shape = n == 0 ? NULL : extents,
                                  .strides = n == 0 ? NULL : extents + n};
  if (n > 0) memcpy(extents, prototype->shape, (size_t)n * sizeof(int64_t));
  mtf_compact_strides(n, prototype->shape, extents + n);
}

/* Runs without the GIL. */
static int allocate(DLTensor* prototype, DLManagedTensorVersioned** out, void* context,
                    SetError set_error) {
  int64_t size = 0, n_bytes = 0;
  if (prototype->device.device_type != kDLCPU) {
    return report(set_error, context, "BufferError", "only kDLCPU memory is allocated here");
  }
  if (!mtf_has_extents(prototype) || !mtf_is_dtype(prototype->dtype) ||
      !mtf_has_its_width(prototype->dtype) || !mtf_count(prototype, 0, &size, &n_bytes)) {
    return report(set_error, context, "ValueError", "the prototype describes no tensor");
  }
  const size_t extents = 2 * (size_t)prototype->ndim * sizeof(int64_t);
  DLManagedTensorVersioned* managed = calloc(1, sizeof *managed + extents);
  void* memory = managed == NULL ? NULL : mtf_aligned_memory(n_bytes);
  if (memory == NULL) {
    free(managed);
    return report(set_error, context, "MemoryError", "out of host memory");
  }
  describe_allocated(managed, prototype, memory, size == 0);
  *out = managed;
  return 0;
}

/* As __dlpack__ without arguments does. */
static Tensor* hold_in_order(Tensor* self, uint64_t* flags) {
  PyObject* const nothing_asked[MTF_KEYWORDS] = {Py_None, Py_None, Py_None, Py_None};
  return mtf_hold_exported(self, nothing_asked, flags);
}

/* Begins a use without a wait: who gets the memory asks for the current work stream. Only memory of
 * the host is waited for, which has no stream that a consumer could order itself by. */
static int hold_without_order(Tensor* self) {
  const bool is_ordered_by_consumer = self->needs_sync && !mtf_is_host_readable(self->dl.device);
  if (is_ordered_by_consumer && self->is_view && !self->is_ended) {
    mtf_hold(self); /* it has the memory, whatever became of its root */
    return 0;
  }
  return mtf_hold_when_done(self, is_ordered_by_consumer ? no_order : Py_None);
}

static Tensor* hold_for_table(Tensor* self, uint64_t* flags) {
  if (mtf_has_negative_stride(&self->dl)) return hold_in_order(self, flags);
  *flags = self->flags & ~MTF_IS_COPIED;
  return hold_without_order(self) < 0 ? NULL : self;
}

/* A managed tensor of what `hold` chooses. -1 with an exception. */
static int export_object(PyObject* object, Tensor* (*hold)(Tensor*, uint64_t*),
                         DLManagedTensorVersioned** out) {
  uint64_t flags = 0;
  Tensor* self = mtf_tensor_from(object);
  Tensor* exported = self == NULL ? NULL : hold(self, &flags);
  if (exported == NULL) return -1;
  *out = mtf_managed_versioned(exported, flags);
  mtf_let_go(exported);
  return *out == NULL ? -1 : 0;
}

static int from_object(void* object, DLManagedTensorVersioned** out) {
  return export_object(object, hold_for_table, out);
}

/* Nothing was waited for when ours left by the table: its view is to wait when it leaves otherwise. */
static void inherit_order(Tensor* view) {
  const Tensor* root = mtf_root(view);
  view->needs_sync = root->needs_sync && !root->is_ended && !mtf_is_host_readable(view->dl.device);
}

static int to_object(DLManagedTensorVersioned* managed, void** out_object) {
  Tensor* self = mtf_adopt_versioned(managed);
  *out_object = self;
  if (self == NULL) return -1;
  if (self->is_view) inherit_order(self);
  return 0;
}

/* Borrowed: what it points at lives as long as the object does, and so does the memory. */
static int describe_object(void* object, DLTensor* out) {
  Tensor* self = mtf_tensor_from(object);
  if (self == NULL) return -1;
  if (mtf_has_negative_stride(&self->dl)) {
    PyErr_SetString(PyExc_BufferError, "negative strides cannot be lent without a copy");
    return -1;
  }
  if (hold_without_order(self) < 0) return -1;
  *out = self->dl;
  self->is_lent = true;
  mtf_let_go(self);
  return 0;
}

/* Memory of the host is complete, and has no stream. Without an exception where Python has ended. */
static int current_work_stream(DLDeviceType device_type, int32_t device_id, void** out_stream) {
  const DLDevice device = {device_type, device_id};
  *out_stream = NULL;
  if (work_stream_query == NULL || mtf_is_host_readable(device)) return 0;
  if (!mtf_can_take_gil()) return -1;
  const PyGILState_STATE state = PyGILState_Ensure(); /* tolerates callers without the GIL */
  PyObject* handle =
      PyObject_CallFunction(work_stream_query, "ii", (int)device_type, (int)device_id);
  if (handle != NULL) *out_stream = PyLong_AsVoidPtr(handle);
  const bool failed = handle == NULL || PyErr_Occurred() != NULL;
  Py_XDECREF(handle);
  PyGILState_Release(state);
  return failed ? -1 : 0;
}

PyObject* mtf_set_work_stream_query(PyObject* module, PyObject* query) {
  (void)module;
  PyObject* before = work_stream_query;
  Py_INCREF(query);
  work_stream_query = query;
  Py_XDECREF(before);
  Py_RETURN_NONE;
}

static DLPackExchangeAPI our_table = {
    .header = {.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}},
    .managed_tensor_allocator = allocate,
    .managed_tensor_from_py_object_no_sync = from_object,
    .managed_tensor_to_py_object_no_sync = to_object,
    .dltensor_from_py_object_no_sync = describe_object,
    .current_work_stream = current_work_stream,
};

int mtf_publish_exchange_table(PyObject* type) {
  no_order = PyLong_FromLong(-1);
  if (no_order == NULL) return -1;
  attribute_name = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  PyObject* capsule = attribute_name == NULL ? NULL : PyCapsule_New(&our_table, table_name, NULL);
  const int failed = capsule == NULL ? -1 : PyObject_SetAttr(type, attribute_name, capsule);
  Py_XDECREF(capsule);
  return failed;
}

/* The next older table; a chain that does not go down would never end. */
static const DLPackExchangeAPIHeader* older(const DLPackExchangeAPIHeader* header) {
  const DLPackExchangeAPIHeader* next = header->prev_api;
  return next != NULL && next->version.major < header->version.major ? next : NULL;
}

/* The newest table of our major version; NULL without an exception where there is none. */
static const DLPackExchangeAPI* table_of(PyObject* type) {
  PyObject* capsule = PyObject_GetAttr(type, attribute_name);
  if (capsule == NULL) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    return NULL;
  }
  const DLPackExchangeAPIHeader* header = NULL;
  if (PyCapsule_IsValid(capsule, table_name)) header = PyCapsule_GetPointer(capsule, table_name);
  Py_DECREF(capsule); /* tables live as long as the process */
  while (header != NULL && header->version.major > DLPACK_MAJOR_VERSION) header = older(header);
  if (header == NULL || header->version.major != DLPACK_MAJOR_VERSION) return NULL;
  return (const DLPackExchangeAPI*)header;
}

static PyObject* none_unless_failed(void) {
  if (PyErr_Occurred()) return NULL;
  Py_RETURN_NONE;
}

static PyObject* failed_without_reason(const char* slot) {
  if (!PyErr_Occurred()) PyErr_Format(PyExc_BufferError, "%s failed and said nothing", slot);
  return NULL;
}

/* A table waits for no stream, and hands out numbers whose conjugation is still to be done. */
static bool may_be_taken_by_table(const Tensor* tensor) {
  return tensor->dl.device.device_type == kDLCPU && tensor->dl.dtype.code != kDLComplex;
}

PyObject* mtf_import_by_table(PyObject* module, PyObject* object) {
  (void)module;
  const DLPackExchangeAPI* table = table_of((PyObject*)Py_TYPE(object));
  if (table == NULL || table->managed_tensor_from_py_object_no_sync == NULL) {
    return none_unless_failed();
  }
  DLManagedTensorVersioned* managed = NULL;
  if (table->managed_tensor_from_py_object_no_sync(object, &managed) != 0 || managed == NULL) {
    return failed_without_reason("managed_tensor_from_py_object_no_sync");
  }
  Tensor* self = mtf_adopt_versioned(managed);
  if (self == NULL) {
    discard(managed, release_versioned);
  } else if (!may_be_taken_by_table(self)) {
    Py_DECREF(self);
    Py_RETURN_NONE;
  }
  return (PyObject*)self;
}

/* Nobody says who owns a tensor that was refused; the one who publishes most of these tables leaves
 * it to the caller (dlpack §1.3). */
static PyObject* hand_over(const DLPackExchangeAPI* table, DLManagedTensorVersioned* managed) {
  void* object = NULL;
  if (table->managed_tensor_to_py_object_no_sync(managed, &object) == 0 && object != NULL) {
    return object;
  }
  discard(managed, release_versioned);
  return failed_without_reason("managed_tensor_to_py_object_no_sync");
}

PyObject* mtf_export_by_table(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
  (void)module;
  if (count != 2) {
    PyErr_Format(PyExc_TypeError, "export_by_table() takes a tensor and a type, not %zd things",
                 count);
    return NULL;
  }
  const DLPackExchangeAPI* table = table_of(arguments[1]);
  if (table == NULL || table->managed_tensor_to_py_object_no_sync == NULL) {
    return none_unless_failed();
  }
  DLManagedTensorVersioned* managed = NULL;
  /* Nobody asks for a stream on this way. */
  if (export_object(arguments[0], hold_in_order, &managed) < 0) return NULL;
  return hand_over(table, managed);
}
