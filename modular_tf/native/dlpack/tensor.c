#include "tensor.h"

#include "buffer_view.h"
#include "export.h"
#include "lifetime.h"

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
    {MTF_BF_GETBUFFER, mtf_get_buffer},
    {MTF_BF_RELEASEBUFFER, mtf_release_buffer},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "modular_tf.native._dlpack.Tensor",
    .basicsize = sizeof(Tensor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

PyObject* mtf_tensor_type_new(void) { return PyType_FromSpec(&spec); }
