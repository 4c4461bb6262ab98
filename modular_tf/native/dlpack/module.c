/* modular_tf.native._dlpack: tensors that other libraries take without a copy, and theirs. */
#include "exchange_table.h"
#include "export.h"
#include "import.h"
#include "tensor.h"

static PyMethodDef functions[] = {
    {"consume", mtf_consume, METH_O, NULL},
    {"import_by_table", mtf_import_by_table, METH_O, NULL},
    {"export_by_table", (PyCFunction)(void (*)(void))mtf_export_by_table, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "modular_tf.native._dlpack", .m_size = -1,
    .m_methods = functions,
};

static int fill(PyObject* module) {
  PyObject* type = mtf_tensor_type_new(); /* kept by mtf_tensor_type for good */
  if (type == NULL || mtf_export_prepare() < 0 || mtf_publish_exchange_table(type) < 0) return -1;
  return PyModule_AddObjectRef(module, "Tensor", type);
}

PyMODINIT_FUNC PyInit__dlpack(void) {
  PyObject* module = PyModule_Create(&definition);
  if (module != NULL && fill(module) < 0) Py_CLEAR(module);
  return module;
}
