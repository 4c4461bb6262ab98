#include "export.h"

#include <stdlib.h>
#include <string.h>

#include "host_copy.h"
#include "lifetime.h"

/* -- managed tensors -- */

const char mtf_legacy_name[] = "dltensor";
const char mtf_used_legacy_name[] = "used_dltensor";
const char mtf_versioned_name[] = "dltensor_versioned";
const char mtf_used_versioned_name[] = "used_dltensor_versioned";

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

bool mtf_is_our_versioned(const DLManagedTensorVersioned* managed) {
  return managed->deleter == delete_versioned;
}

bool mtf_is_our_legacy(const DLManagedTensor* managed) { return managed->deleter == delete_legacy; }

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

DLManagedTensorVersioned* mtf_managed_versioned(Tensor* self, uint64_t flags) {
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

/* A consumed capsule bears another name. A destructor may run with an exception pending. */
static void* take_unused(PyObject* capsule, const char* name) {
  return PyCapsule_IsValid(capsule, name) ? PyCapsule_GetPointer(capsule, name) : NULL;
}

static void destroy_versioned_capsule(PyObject* capsule) {
  DLManagedTensorVersioned* managed = take_unused(capsule, mtf_versioned_name);
  if (managed == NULL || managed->deleter == NULL) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  managed->deleter(managed);
  PyErr_Restore(type, value, traceback);
}

static void destroy_legacy_capsule(PyObject* capsule) {
  DLManagedTensor* managed = take_unused(capsule, mtf_legacy_name);
  if (managed == NULL || managed->deleter == NULL) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  managed->deleter(managed);
  PyErr_Restore(type, value, traceback);
}

PyObject* mtf_versioned_capsule(Tensor* self, uint64_t flags) {
  DLManagedTensorVersioned* managed = mtf_managed_versioned(self, flags);
  if (managed == NULL) return NULL;
  PyObject* capsule = PyCapsule_New(managed, mtf_versioned_name, destroy_versioned_capsule);
  if (capsule == NULL) delete_versioned(managed);
  return capsule;
}

PyObject* mtf_legacy_capsule(Tensor* self) {
  DLManagedTensor* managed = managed_legacy(self);
  if (managed == NULL) return NULL;
  PyObject* capsule = PyCapsule_New(managed, mtf_legacy_name, destroy_legacy_capsule);
  if (capsule == NULL) delete_legacy(managed);
  return capsule;
}

/* -- __dlpack__ -- */

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

Tensor* mtf_hold_exported(Tensor* self, PyObject* const* request, uint64_t* flags) {
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
