#include "prepared_call.h"

#include <stddef.h>

#include "operands.h"
#include "outputs.h"
#include "structmember.h"

typedef struct {
  PyObject_HEAD
  PyObject* kernel;         /* a weak reference: it ends with the service, not with the operation */
  PyObject* registry;       /* what is registered has to be as it was: */
  PyObject* moment;         /* its `moment` when this was made */
  PyObject* finish;         /* makes the result of a list of arrays; None: the array, or None */
  PyObject* default_device; /* finds the device where no input is on one; None: it is fixed */
  mtf_kernel* native;
  const mtf_executor* native_executor;
  ArrayPlace place; /* objects that the kernel keeps: to be used only while that is held */
  int32_t n_inputs, n_outputs;
  DLDataType input_dtypes[MTF_MOST_TENSORS], output_dtypes[MTF_MOST_TENSORS];
  int32_t input_types[MTF_MOST_TENSORS]; /* TF_DataType */
  int32_t given_types[MTF_MOST_TENSORS], output_types[MTF_MOST_TENSORS]; /* Tensor.data_type */
} PreparedCall;

static PyTypeObject* prepared_call_type;

/* -- made from Python -- */

static int read_dtypes(PyObject* tuple, DLDataType* dtypes, int32_t* types, int32_t* given) {
  const Py_ssize_t count = PyTuple_Size(tuple);
  if (count > MTF_MOST_TENSORS) PyErr_SetString(PyExc_ValueError, "there are too many tensors");
  for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); ++i) {
    int code = 0, bits = 0, lanes = 0;
    if (PyArg_ParseTuple(PyTuple_GetItem(tuple, i), given == NULL ? "iiii" : "iiiii", &code, &bits,
                         &lanes, &types[i], given == NULL ? NULL : &given[i])) {
      dtypes[i] = (DLDataType){(uint8_t)code, (uint8_t)bits, (uint16_t)lanes};
    }
  }
  return PyErr_Occurred() ? -1 : (int)count;
}

static void keep_references(PreparedCall* self) {
  Py_INCREF(self->kernel);
  Py_INCREF(self->registry);
  Py_INCREF(self->moment);
  Py_INCREF(self->finish);
  Py_INCREF(self->default_device);
}

static PyObject* new_call(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static char* names[] = {"kernel",  "native",  "executor", "native_executor", "device",
                          "place",   "inputs",  "outputs",  "registry",        "moment",
                          "finish",  "default_device", NULL};
  PyObject *inputs, *outputs;
  unsigned long long native = 0, native_executor = 0;
  int device_type = 0, device_id = 0;
  PreparedCall read = {0};
  if (!PyArg_ParseTupleAndKeywords(
          arguments, keywords, "$OKOKO(ii)O!O!OOOO:PreparedCall", names, &read.kernel, &native,
          &read.place.executor, &native_executor, &read.place.device, &device_type, &device_id,
          &PyTuple_Type, &inputs, &PyTuple_Type, &outputs, &read.registry, &read.moment,
          &read.finish, &read.default_device)) {
    return NULL;
  }
  read.native = (mtf_kernel*)(uintptr_t)native;
  read.native_executor = (const mtf_executor*)(uintptr_t)native_executor;
  read.place.place = (DLDevice){(DLDeviceType)device_type, device_id};
  read.n_inputs = read_dtypes(inputs, read.input_dtypes, read.input_types, read.given_types);
  read.n_outputs = read.n_inputs < 0
                       ? -1
                       : read_dtypes(outputs, read.output_dtypes, read.output_types, NULL);
  if (read.n_outputs < 0) return NULL;
  PreparedCall* self = (PreparedCall*)PyType_GenericAlloc(type, 0);
  if (self == NULL) return NULL;
  keep_references(&read);
  const PyObject head = self->ob_base;
  *self = read;
  self->ob_base = head;
  return (PyObject*)self;
}

static int visit_references(PyObject* object, visitproc visit, void* arg) {
  const PreparedCall* self = (PreparedCall*)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->kernel);
  Py_VISIT(self->registry);
  Py_VISIT(self->moment);
  Py_VISIT(self->finish);
  Py_VISIT(self->default_device);
  return 0;
}

/* No tp_clear: it never changes, and a cycle leads through something that has one. */
static void deallocate(PyObject* object) {
  PreparedCall* self = (PreparedCall*)object;
  PyTypeObject* type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  Py_XDECREF(self->kernel);
  Py_XDECREF(self->registry);
  Py_XDECREF(self->moment);
  Py_XDECREF(self->finish);
  Py_XDECREF(self->default_device);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

static PyMemberDef members[] = {
    {"kernel", T_OBJECT_EX, offsetof(PreparedCall, kernel), READONLY, NULL},
    {"moment", T_OBJECT_EX, offsetof(PreparedCall, moment), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_members, members},
    {Py_tp_new, new_call},
    {Py_tp_dealloc, deallocate},
    {Py_tp_traverse, visit_references},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "modular_tf.native._dlpack.PreparedCall",
    .basicsize = sizeof(PreparedCall),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

PyObject* mtf_prepared_call_type_new(void) {
  prepared_call_type = (PyTypeObject*)PyType_FromSpec(&spec);
  return (PyObject*)prepared_call_type;
}

/* -- whether it serves -- */

static bool is_same(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

static bool fits(const PreparedCall* self, const Operands* operands) {
  if (self->n_inputs != operands->count) return false;
  for (int32_t i = 0; i < self->n_inputs; ++i) {
    const Operand* operand = &operands->all[i];
    if (!is_same(operand->dtype, self->input_dtypes[i])) return false;
    if (operand->data_type != self->given_types[i]) return false;
    if (operand->executor != NULL && operand->executor != self->place.executor) return false;
  }
  return true;
}

/* Whether `found`, a new reference, is this object; -1 for NULL with an exception, such as that of a
 * signal handler. */
static int is_still(PyObject* found, const PyObject* expected) {
  Py_XDECREF(found);
  return found == NULL ? -1 : found == expected;
}

/* 1: nothing has changed that would lead to another kernel; 0: something has; -1: an exception. */
static int is_current(const PreparedCall* self, const Operands* operands) {
  const int same = is_still(PyObject_GetAttr(self->registry, mtf_call_names.moment), self->moment);
  if (same <= 0 || self->default_device == Py_None || operands->has_arrays) return same;
  return is_still(PyObject_CallObject(self->default_device, NULL), self->place.device);
}

/* The kernel, held from now on; None where it has ended, or its device has; NULL with an exception. */
static PyObject* hold_kernel(const PreparedCall* self, const Operands* operands) {
  const int current = is_current(self, operands);
  if (current < 0) return NULL;
  PyObject* kernel = current ? PyObject_CallObject(self->kernel, NULL) : NULL;
  if (kernel != NULL && mtf_calls.core.is_open(self->native_executor)) return kernel;
  Py_XDECREF(kernel);
  if (kernel == NULL && current) return NULL;
  Py_RETURN_NONE;
}

/* -- calls -- */

/* Keeps an input that the kernel has a handle of. What there is no memory to note is kept for good. */
static void retain(uint64_t number, Operand* operand) {
  PyObject* key = PyLong_FromUnsignedLongLong(number);
  PyObject* kept = mtf_keep_operand(operand);
  const bool is_noted =
      key != NULL && kept != NULL && PyDict_SetItem(mtf_calls.retained, key, kept) == 0;
  if (is_noted) Py_DECREF(kept);
  if (!is_noted && kept == NULL) operand->copy = NULL;
  Py_XDECREF(key);
  if (!is_noted) PyErr_Clear();
}

static void retain_all(mtf_kernel_result* result, Operands* operands) {
  for (int32_t i = 0; i < operands->count; ++i) {
    const uint64_t number = mtf_calls.core.keeper(result, i);
    if (number != 0) retain(number, &operands->all[i]);
  }
}

/* Keeps the inputs that a kernel has although its last call on this thread failed. */
static void retain_of_failed(Operands* operands) {
  mtf_kernel_result* failed = mtf_calls.core.take_failed();
  if (failed == NULL) return;
  retain_all(failed, operands);
  Py_BEGIN_ALLOW_THREADS
  mtf_calls.core.free_result(failed);
  Py_END_ALLOW_THREADS
}

static int keep_retained(mtf_kernel_result* result, Operands* operands) {
  retain_all(result, operands);
  if (PyDict_Size(mtf_calls.retained) == 0) return 0;
  PyObject* done = PyObject_CallObject(mtf_calls.drop_released, NULL);
  Py_XDECREF(done);
  return done == NULL ? -1 : 0;
}

static PyObject* list_of_outputs(const PreparedCall* self, mtf_kernel_result* result) {
  PyObject* list = PyList_New(self->n_outputs);
  for (int32_t i = 0; list != NULL && i < self->n_outputs; ++i) {
    PyObject* array = mtf_output_array(result, i, self->output_dtypes[i],
                                       self->output_types[i], &self->place);
    if (array == NULL) {
      Py_CLEAR(list);
    } else {
      PyList_SetItem(list, i, array);
    }
  }
  return list;
}

static PyObject* take_outputs(const PreparedCall* self, mtf_kernel_result* result) {
  if (self->finish == Py_None) {
    if (self->n_outputs == 0) Py_RETURN_NONE;
    return mtf_output_array(result, 0, self->output_dtypes[0], self->output_types[0], &self->place);
  }
  PyObject* list = list_of_outputs(self, result);
  PyObject* made = list == NULL ? NULL : PyObject_CallFunctionObjArgs(self->finish, list, NULL);
  Py_XDECREF(list);
  return made;
}

static PyObject* run(const PreparedCall* self, PyObject* kernel, Operands* operands) {
  mtf_kernel_result* result;
  Py_BEGIN_ALLOW_THREADS
  result = mtf_calls.core.run(self->native, NULL, operands->inputs, operands->count);
  Py_END_ALLOW_THREADS
  if (result == NULL) {
    retain_of_failed(operands);
    /* It raises the error that the core keeps for this thread. */
    return PyObject_CallMethodObjArgs(kernel, mtf_call_names.raise_failure, NULL);
  }
  PyObject* made = keep_retained(result, operands) < 0 ? NULL : take_outputs(self, result);
  Py_BEGIN_ALLOW_THREADS
  mtf_calls.core.free_result(result); /* may call a plugin's deallocator */
  Py_END_ALLOW_THREADS
  return made;
}

static PyObject* not_here(void) { Py_RETURN_NOTIMPLEMENTED; }

/* Once work that streams of the device have is done, since kernels on the host have no stream. */
static PyObject* run_in_order(const PreparedCall* self, PyObject* kernel, Operands* operands) {
  PyObject* done =
      PyObject_CallMethodObjArgs(self->place.executor, mtf_call_names.await_streams, NULL);
  if (done == NULL) return NULL;
  Py_DECREF(done);
  const int is_aligned = mtf_align_operands(operands);
  if (is_aligned <= 0) return is_aligned < 0 ? NULL : not_here();
  for (int32_t i = 0; i < self->n_inputs; ++i) operands->inputs[i].type = self->input_types[i];
  return run(self, kernel, operands);
}

static PyObject* call_first_fit(PyObject* calls, Operands* operands) {
  const Py_ssize_t count = PyTuple_Size(calls);
  if (count < 0) return NULL;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const PreparedCall* self = (PreparedCall*)PyTuple_GetItem(calls, i);
    if (Py_TYPE((PyObject*)self) != prepared_call_type || !fits(self, operands)) continue;
    PyObject* kernel = hold_kernel(self, operands);
    if (kernel == NULL) return NULL;
    PyObject* made = kernel == Py_None ? NULL : run_in_order(self, kernel, operands);
    const bool has_served = kernel != Py_None;
    Py_DECREF(kernel);
    if (has_served) return made;
  }
  return not_here();
}

PyObject* mtf_call_prepared(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
  (void)module;
  if (count != 2 || mtf_calls.array_type == NULL) {
    PyErr_SetString(PyExc_TypeError, "call_prepared() takes 2 arguments, after support_calls()");
    return NULL;
  }
  Operands operands;
  const int read = mtf_read_operands(arguments[1], &operands);
  PyObject* made = NULL;
  if (read > 0) made = call_first_fit(arguments[0], &operands);
  if (read == 0) made = not_here();
  mtf_drop_operands(&operands);
  return made;
}
