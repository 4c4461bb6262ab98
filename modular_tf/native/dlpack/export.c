#include "export.h"

#include "managed_tensor.h"

enum { STREAM, MAX_VERSION, DL_DEVICE, COPY, KEYWORDS };

static const char* const keyword_texts[KEYWORDS] = {"stream", "max_version", "dl_device", "copy"};
static PyObject* keyword_names[KEYWORDS];

int mtf_export_prepare(void) {
  for (int i = 0; i < KEYWORDS; ++i) {
    keyword_names[i] = PyUnicode_InternFromString(keyword_texts[i]);
    if (keyword_names[i] == NULL) return -1;
  }
  return 0;
}

/* Names in calls are interned nearly always, so that addresses tell; a built one is compared. */
static int find_keyword(PyObject* name) {
  for (int i = 0; i < KEYWORDS; ++i) {
    if (name == keyword_names[i]) return i;
  }
  for (int i = 0; i < KEYWORDS; ++i) {
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
  for (int i = 0; i < KEYWORDS; ++i) request[i] = Py_None;
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
  return major >= DLPACK_MAJOR;
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
  if ((flags & (DLPACK_FLAG_READ_ONLY | DLPACK_FLAG_SUBBYTE_PADDED)) == 0) {
    return mtf_legacy_capsule(self);
  }
  PyErr_SetString(PyExc_BufferError,
                  (flags & DLPACK_FLAG_READ_ONLY) != 0
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
static PyObject* elsewhere(Tensor* self, DLDevice wanted, int copy) {
  const DLDevice host = {kDLCPU, 0};
  const bool is_moved = !is_same_device(self->dl.device, wanted);
  if (!mtf_is_host_readable(self->dl.device) || !is_same_device(wanted, host)) {
    return refuse_elsewhere(self, wanted);
  }
  if (is_moved && copy != 1) return (PyObject*)mtf_tensor_view_on(self, host);
  if (copy != 0) return (PyObject*)mtf_tensor_host_copy(self);
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
      !PyArg_ParseTuple(arguments, "OOO:_export_elsewhere", &stream, &dl_device, &copy) ||
      read_device(self, dl_device, &wanted) < 0 || check_stream(wanted, stream) < 0 ||
      mtf_tensor_synchronise(self, Py_None) < 0) {
    return NULL;
  }
  const int truth = read_copy(copy);
  return PyErr_Occurred() ? NULL : elsewhere(self, wanted, truth);
}

/* What a subclass returned must be what was asked for. */
static Tensor* check_elsewhere(PyObject* result, DLDevice wanted) {
  Tensor* tensor = result == NULL ? NULL : mtf_tensor_from(result);
  if (tensor != NULL && is_same_device(tensor->dl.device, wanted)) return tensor;
  if (tensor != NULL) {
    PyErr_Format(PyExc_BufferError, "the export went to DLPack device (%d, %d) instead of (%d, %d)",
                 (int)tensor->dl.device.device_type, (int)tensor->dl.device.device_id,
                 (int)wanted.device_type, (int)wanted.device_id);
  }
  return NULL;
}

static PyObject* export_elsewhere(Tensor* self, PyObject** request, DLDevice wanted,
                                  bool is_versioned) {
  PyObject* result = PyObject_CallMethod((PyObject*)self, "_export_elsewhere", "OOO",
                                         request[STREAM], request[DL_DEVICE], request[COPY]);
  Tensor* tensor = check_elsewhere(result, wanted);
  PyObject* capsule = tensor == NULL ? NULL : capsule_of(tensor, is_versioned, tensor->flags);
  Py_XDECREF(result);
  return capsule;
}

/* Where something is asked for, or the tensor is not plain. */
static PyObject* export_as_asked(Tensor* self, PyObject** request, bool is_versioned) {
  DLDevice wanted;
  const int copy = read_copy(request[COPY]);
  if (PyErr_Occurred() || read_device(self, request[DL_DEVICE], &wanted) < 0 ||
      check_stream(wanted, request[STREAM]) < 0) {
    return NULL;
  }
  if (copy == 1 || !is_same_device(wanted, self->dl.device) || mtf_has_negative_stride(&self->dl)) {
    return export_elsewhere(self, request, wanted, is_versioned);
  }
  if (mtf_tensor_synchronise(self, request[STREAM]) < 0) return NULL;
  return capsule_of(self, is_versioned, self->flags & ~DLPACK_FLAG_IS_COPIED);
}

PyObject* mtf_dlpack(PyObject* object, PyObject* const* arguments, Py_ssize_t count,
                     PyObject* keywords) {
  PyObject* request[KEYWORDS];
  Tensor* self = (Tensor*)object;
  if (!self->is_described) self = mtf_tensor_from(object);
  if (self == NULL || read_request(arguments, count, keywords, request) < 0) return NULL;
  const int is_versioned = wants_versioned(request[MAX_VERSION]);
  if (is_versioned < 0) return NULL;
  return export_as_asked(self, request, is_versioned != 0);
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
