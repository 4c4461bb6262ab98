/* Calls of kernels that were made before, on a device in host memory.
 *
 * The general way (modular_tf/kernel/op.py) finds the node and the kernel, and how the inputs go in;
 * here is what it found, for calls with inputs of the same types. Whatever is unusual is left to it. */
#include "tensor.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../host_runtime/kernels/host_types.h"
#include "structmember.h"

/* -- what the core has for calls of kernels, by address: it is another extension module -- */

typedef struct mtf_kernel mtf_kernel;
typedef struct mtf_kernel_result mtf_kernel_result;
typedef struct mtf_executor mtf_executor;

/* The functions of the same names in core/kernels.h and core/executor.h, in this order. */
typedef struct {
  mtf_kernel_result* (*run)(mtf_kernel* kernel, void* stream, mtf_kernel_input* inputs,
                            int32_t n_inputs);
  const mtf_kernel_output* (*outputs)(const mtf_kernel_result* result);
  void* (*take_memory)(mtf_kernel_result* result, int32_t output);
  void (*free_memory)(void* memory);
  void* (*take_buffer)(mtf_kernel_result* result, int32_t output);
  void (*free_buffer)(void* buffer);
  uint64_t (*keeper)(const mtf_kernel_result* result, int32_t input);
  void (*free_result)(mtf_kernel_result* result);
  int (*is_open)(const mtf_executor* executor);
  mtf_kernel_result* (*take_failed)(void);
} CoreFunctions;

/* What calls need and Python has. Set once; its references are kept for good. */
typedef struct {
  CoreFunctions core;
  PyTypeObject* array_type;  /* DeviceArray */
  PyObject* retained;        /* a dict: what inputs are kept, by the number of the keeper */
  PyObject* drop_released;   /* drops those that no kernel keeps any more */
} CallSupport;

/* Names of attributes, as Python strings. */
typedef struct {
  PyObject *device, *executor, *kept_memory, *native, *moment, *await_streams, *raise_failure,
      *array_struct, *numpy_array;
} CallNames;

static CallSupport mtf_calls;
static CallNames mtf_call_names;

static int intern_names(void) {
  struct {
    PyObject** name;
    const char* text;
  } const all[] = {
      {&mtf_call_names.device, "_device"},
      {&mtf_call_names.executor, "_executor"},
      {&mtf_call_names.kept_memory, "_kept_memory"},
      {&mtf_call_names.native, "native"},
      {&mtf_call_names.moment, "moment"},
      {&mtf_call_names.await_streams, "await_streams"},
      {&mtf_call_names.raise_failure, "raise_failure"},
      {&mtf_call_names.array_struct, "__array_struct__"},
      {&mtf_call_names.numpy_array, "ndarray"},
  };
  for (size_t index = 0; index < sizeof all / sizeof *all; ++index) {
    if (*all[index].name == NULL) *all[index].name = PyUnicode_InternFromString(all[index].text);
    if (*all[index].name == NULL) return -1;
  }
  return 0;
}

PyObject* mtf_support_calls(PyObject* module, PyObject* arguments) {
  (void)module;
  unsigned long long at[10];
  PyObject *array_type, *retained, *drop_released;
  if (!PyArg_ParseTuple(arguments, "(KKKKKKKKKK)O!O!O:support_calls", &at[0], &at[1], &at[2], &at[3],
                        &at[4], &at[5], &at[6], &at[7], &at[8], &at[9], &PyType_Type,
                        &array_type, &PyDict_Type, &retained, &drop_released) ||
      intern_names() < 0) {
    return NULL;
  }
  if (!PyType_IsSubtype((PyTypeObject*)array_type, mtf_tensor_type)) {
    PyErr_SetString(PyExc_TypeError, "expected a type of tensors");
    return NULL;
  }
  CallSupport made = {.array_type = (PyTypeObject*)array_type, .retained = retained,
                      .drop_released = drop_released};
  void** slots = (void**)&made.core;
  for (size_t index = 0; index < 10; ++index) slots[index] = (void*)(uintptr_t)at[index];
  Py_INCREF(array_type);
  Py_INCREF(retained);
  Py_INCREF(drop_released);
  mtf_calls = made;
  Py_RETURN_NONE;
}

/* -- the inputs of a call: arrays of a device in host memory, and numpy's -- */

enum { MTF_MOST_TENSORS = 8 };

/* Of one input. References are the operand's own. */
typedef struct {
  DLDataType dtype;
  int32_t data_type;  /* of an array: what its elements stand for; 0: themselves */
  PyObject* executor; /* of an array's device; NULL for numpy's */
  PyObject* hold;     /* keeps the memory, whoever closes the array meanwhile */
  void* copy;         /* aligned memory that stands for it; or NULL */
} Operand;

typedef struct {
  int32_t count;
  bool has_arrays; /* of devices */
  Operand all[MTF_MOST_TENSORS];
  mtf_kernel_input inputs[MTF_MOST_TENSORS]; /* without types */
} Operands;

enum {
  ALIGNMENT = 64,          /* of memory that kernels get */
  MOST_COPIED = 64 * 1024, /* bytes, with the GIL; more than that goes the general way */
};

/* What `__array_struct__` of numpy's arrays holds, version 2. */
typedef struct {
  int two;
  int nd;
  char typekind;
  int itemsize;
  int flags;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  void* data;
  PyObject* descr;
} ArrayStruct;

enum { C_CONTIGUOUS = 0x1, ALIGNED = 0x100, NATIVE_ORDER = 0x200 };

/* numpy's type, borrowed for good: the module is never unloaded. NULL while nobody has imported it. */
static PyObject* numpy_array_type(void) {
  static PyObject* found;
  if (found != NULL) return found;
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* numpy = modules == NULL ? NULL : PyDict_GetItemString(modules, "numpy");
  if (numpy != NULL) found = PyObject_GetAttr(numpy, mtf_call_names.numpy_array);
  if (found == NULL) PyErr_Clear();
  return found;
}

/* 0 where the array was closed by its memory, which users can have, or is in pinned memory of the
 * host, which has no native part; -1 with an exception. */
static int has_open_memory(PyObject* array) {
  PyObject* memory = PyObject_GetAttr(array, mtf_call_names.kept_memory);
  if (memory == NULL) return -1;
  const bool is_lazy = memory == Py_None;
  PyObject* native = is_lazy ? NULL : PyObject_GetAttr(memory, mtf_call_names.native);
  Py_DECREF(memory);
  if (is_lazy) return 1;
  const bool is_open = native != NULL && native != Py_None;
  Py_XDECREF(native);
  if (native != NULL) return is_open;
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
  PyErr_Clear();
  return 0;
}

static int read_array(PyObject* object, Operand* operand, mtf_kernel_input* input) {
  Tensor* tensor = (Tensor*)object;
  if (!tensor->is_described || tensor->is_ended || tensor->dl.dtype.bits % 8 != 0) return 0;
  const int is_open = has_open_memory(object);
  if (is_open <= 0 || tensor->is_ended) return is_open < 0 ? -1 : 0;
  operand->executor = PyObject_GetAttr(object, mtf_call_names.executor);
  if (operand->executor == NULL) return -1;
  Py_XINCREF(tensor->owner);
  operand->hold = tensor->owner;
  operand->dtype = tensor->dl.dtype;
  operand->data_type = tensor->data_type;
  input->data = tensor->dl.data;
  input->size = (uint64_t)tensor->n_bytes;
  input->dims = tensor->dl.shape;
  input->rank = tensor->dl.ndim;
  return 1;
}

static bool read_dtype(const ArrayStruct* array, DLDataType* dtype) {
  const int size = array->itemsize;
  dtype->bits = (uint8_t)(size * 8);
  dtype->lanes = 1;
  switch (array->typekind) {
    case 'f': dtype->code = kDLFloat; return size == 2 || size == 4 || size == 8;
    case 'i': dtype->code = kDLInt; return size <= 8;
    case 'u': dtype->code = kDLUInt; return size <= 8;
    case 'b': dtype->code = kDLBool; return size == 1;
    case 'c': dtype->code = kDLComplex; return size == 8 || size == 16;
    default: return false;
  }
}

static uint64_t bytes_of(const ArrayStruct* array) {
  uint64_t bytes = (uint64_t)array->itemsize; /* the array exists: nothing overflows */
  for (int i = 0; i < array->nd; ++i) bytes *= (uint64_t)array->shape[i];
  return bytes;
}

static int read_numpy(PyObject* object, Operand* operand, mtf_kernel_input* input) {
  const int needed = C_CONTIGUOUS | ALIGNED | NATIVE_ORDER;
  operand->hold = PyObject_GetAttr(object, mtf_call_names.array_struct); /* keeps the array too */
  if (operand->hold == NULL) return -1;
  const ArrayStruct* array = PyCapsule_GetPointer(operand->hold, NULL);
  if (array == NULL) return -1;
  if ((array->flags & needed) != needed || !read_dtype(array, &operand->dtype)) return 0;
  _Static_assert(sizeof *array->shape == sizeof *input->dims, "sizes are of 64 bits");
  input->data = array->data;
  input->size = bytes_of(array);
  input->dims = (const int64_t*)array->shape;
  input->rank = array->nd;
  return 1;
}

/* Reads the inputs. 1: done; 0: some are not for the short way; -1: an exception. In any case they
 * have to be dropped. */
static int read_operands(PyObject* inputs, Operands* operands) {
  const Py_ssize_t count = PyTuple_Size(inputs);
  operands->count = 0;
  operands->has_arrays = false;
  if (count < 0 || count > MTF_MOST_TENSORS) return count < 0 ? -1 : 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* object = PyTuple_GetItem(inputs, i);
    Operand* operand = &operands->all[i];
    mtf_kernel_input* input = &operands->inputs[i];
    *operand = (Operand){0};
    *input = (mtf_kernel_input){.is_on_host = 1};
    ++operands->count;
    const bool is_array = PyObject_TypeCheck(object, mtf_calls.array_type);
    if (!is_array && (PyObject*)Py_TYPE(object) != numpy_array_type()) return 0;
    operands->has_arrays |= is_array;
    const int read = is_array ? read_array(object, operand, input)
                              : read_numpy(object, operand, input);
    if (read <= 0) return read;
  }
  return 1;
}

/* Copies those that kernels could not read where they are. As above. */
static int align_operands(Operands* operands) {
  for (int32_t i = 0; i < operands->count; ++i) {
    mtf_kernel_input* input = &operands->inputs[i];
    if (input->size == 0 || (uintptr_t)input->data % ALIGNMENT == 0) continue;
    if (input->size > MOST_COPIED || operands->all[i].executor != NULL) return 0;
    void* copy = aligned_alloc(ALIGNMENT, (input->size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (copy == NULL) return PyErr_NoMemory(), -1;
    memcpy(copy, input->data, input->size);
    operands->all[i].copy = input->data = copy;
  }
  return 1;
}

/* What keeps the memory of an input as long as a kernel wants; NULL with an exception. */
static PyObject* keep_operand(Operand* operand) {
  if (operand->copy != NULL) {
    PyObject* kept = mtf_own(operand->copy, free);
    if (kept != NULL) operand->copy = NULL;
    return kept;
  }
  PyObject* kept = operand->hold == NULL ? Py_None : operand->hold;
  Py_INCREF(kept);
  return kept;
}

static void drop_operands(Operands* operands) {
  for (int32_t i = 0; i < operands->count; ++i) {
    free(operands->all[i].copy);
    Py_XDECREF(operands->all[i].executor);
    Py_XDECREF(operands->all[i].hold);
  }
}

/* -- what comes out of a call, as arrays of the device -- */

/* What all arrays of a call have in common. */
typedef struct {
  DLDevice place;
  PyObject *device, *executor;
} ArrayPlace;

/* What owns the memory of an output; NULL without an exception where there is no memory. */
static PyObject* take_owner(mtf_kernel_result* result, int32_t index,
                            const mtf_kernel_output* output) {
  const bool is_memory = output->owner != NULL;
  if (!is_memory && output->buffer == NULL) return NULL;
  PyObject* owner = mtf_own(is_memory ? output->owner : output->buffer,
                            is_memory ? mtf_calls.core.free_memory : mtf_calls.core.free_buffer);
  if (owner == NULL) return NULL;
  (void)(is_memory ? mtf_calls.core.take_memory : mtf_calls.core.take_buffer)(result, index);
  return owner;
}

static int describe(Tensor* tensor, const mtf_kernel_output* output, DLDataType dtype,
                    DLDevice place) {
  const DLTensor dl = {.data = output->data, .device = place, .ndim = output->rank, .dtype = dtype,
                       .shape = (int64_t*)output->dims};
  if (mtf_tensor_describe(tensor, &dl, 0, PyExc_ValueError) < 0) return -1;
  if ((uint64_t)tensor->n_bytes <= output->size) return 0;
  PyErr_Format(PyExc_ValueError, "an output of %lld bytes lies in a memory of %llu",
               (long long)tensor->n_bytes, (unsigned long long)output->size);
  return -1;
}

static int set_attributes(PyObject* array, const ArrayPlace* place) {
  return PyObject_SetAttr(array, mtf_call_names.device, place->device) < 0 ||
                 PyObject_SetAttr(array, mtf_call_names.executor, place->executor) < 0 ||
                 PyObject_SetAttr(array, mtf_call_names.kept_memory, Py_None) < 0
             ? -1
             : 0;
}

/* Output `index` of a call that is over, whose elements stand for `data_type`; NULL with an exception. */
static PyObject* output_array(mtf_kernel_result* result, int32_t index, DLDataType dtype,
                           int32_t data_type, const ArrayPlace* place) {
  const mtf_kernel_output* output = mtf_calls.core.outputs(result) + index;
  PyObject* owner = take_owner(result, index, output);
  if (owner == NULL && PyErr_Occurred()) return NULL;
  PyObject* array = PyType_GenericAlloc(mtf_calls.array_type, 0);
  if (array != NULL && (describe((Tensor*)array, output, dtype, place->place) < 0 ||
                        set_attributes(array, place) < 0)) {
    Py_CLEAR(array);
  }
  if (array == NULL) {
    Py_XDECREF(owner);
    return NULL;
  }
  ((Tensor*)array)->owner = owner;
  ((Tensor*)array)->needs_sync = true;
  ((Tensor*)array)->data_type = data_type;
  return array;
}

/* -- calls that were made before -- */

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
  PyObject* kept = keep_operand(operand);
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
    PyObject* array = output_array(result, i, self->output_dtypes[i],
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
    return output_array(result, 0, self->output_dtypes[0], self->output_types[0], &self->place);
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
  const int is_aligned = align_operands(operands);
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
  const int read = read_operands(arguments[1], &operands);
  PyObject* made = NULL;
  if (read > 0) made = call_first_fit(arguments[0], &operands);
  if (read == 0) made = not_here();
  drop_operands(&operands);
  return made;
}
