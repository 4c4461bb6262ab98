#include "operands.h"

#include <stdlib.h>
#include <string.h>

#include "../dlpack/lifetime.h"
#include "../dlpack/owned_pointer.h"

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

int mtf_read_operands(PyObject* inputs, Operands* operands) {
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

int mtf_align_operands(Operands* operands) {
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

PyObject* mtf_keep_operand(Operand* operand) {
  if (operand->copy != NULL) {
    PyObject* kept = mtf_own(operand->copy, free);
    if (kept != NULL) operand->copy = NULL;
    return kept;
  }
  PyObject* kept = operand->hold == NULL ? Py_None : operand->hold;
  Py_INCREF(kept);
  return kept;
}

void mtf_drop_operands(Operands* operands) {
  for (int32_t i = 0; i < operands->count; ++i) {
    free(operands->all[i].copy);
    Py_XDECREF(operands->all[i].executor);
    Py_XDECREF(operands->all[i].hold);
  }
}
