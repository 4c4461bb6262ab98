/* modular_tf.native._dlpack: tensors that other libraries take without a copy, and theirs. */
#include "../file_calls/stat_call.h"
#include "../kernel_calls/prepared_call.h"
#include "export.h"
#include "host_copy.h"
#include "import.h"
#include "lifetime.h"
#include "tensor.h"

static PyMethodDef functions[] = {
    {"consume", mtf_consume, METH_O, NULL},
    {"import_by_table", mtf_import_by_table, METH_O, NULL},
    {"export_by_table", (PyCFunction)(void (*)(void))mtf_export_by_table, METH_FASTCALL, NULL},
    {"set_work_stream_query", mtf_set_work_stream_query, METH_O, NULL},
    {"repacked", mtf_repacked, METH_VARARGS, NULL},
    {"bytes_of_elements", mtf_bytes_of_elements, METH_VARARGS, NULL},
    {"owned_pointer", (PyCFunction)(void (*)(void))mtf_owned_pointer, METH_FASTCALL, NULL},
    {"stat_path", (PyCFunction)(void (*)(void))mtf_call_stat_path, METH_FASTCALL, NULL},
    {"support_calls", mtf_support_calls, METH_VARARGS, NULL},
    {"call_prepared", (PyCFunction)(void (*)(void))mtf_call_prepared, METH_FASTCALL, NULL},
    {"note_interpreter_ends", mtf_note_interpreter_ends, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "modular_tf.native._dlpack", .m_size = 0,
    .m_methods = functions,
};

static PyObject* prepared_call_type;

/* Makes the types once for the process, however often the module is imported anew. */
static int prepare(void) {
  if (mtf_tensor_type != NULL) return 0;
  if (mtf_export_prepare() < 0) return -1;
  PyObject* type = mtf_tensor_type_new();
  if (type != NULL && mtf_publish_exchange_table(type) < 0) Py_CLEAR(type);
  if (type != NULL && prepared_call_type == NULL) {
    prepared_call_type = mtf_prepared_call_type_new();
    if (prepared_call_type == NULL) Py_CLEAR(type);
  }
  mtf_tensor_type = (PyTypeObject*)type; /* kept for good, as is the other one */
  return type == NULL ? -1 : 0;
}

static int fill(PyObject* module) {
  return prepare() < 0 ||
                 PyModule_AddObjectRef(module, "Tensor", (PyObject*)mtf_tensor_type) < 0 ||
                 PyModule_AddObjectRef(module, "PreparedCall", prepared_call_type) < 0
             ? -1
             : 0;
}

/* A deleter would wait for ever there: PyGILState_Ensure knows the main interpreter alone. */
static bool is_in_subinterpreter(void) {
  return PyInterpreterState_GetID(PyInterpreterState_Get()) != 0;
}

PyMODINIT_FUNC PyInit__dlpack(void) {
  if (is_in_subinterpreter()) {
    PyErr_SetString(PyExc_ImportError,
                    "modular_tf works in the main interpreter of a process only; import it there");
    return NULL;
  }
  PyObject* module = PyModule_Create(&definition);
  if (module != NULL && fill(module) < 0) Py_CLEAR(module);
  return module;
}
