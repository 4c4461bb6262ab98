#include "tensor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

/* How many tensors a thread destroys one inside of the other, where one keeps the next. */
enum { MOST_NESTED = 16 };

typedef struct {
  int depth;
  Tensor* postponed; /* linked by dl.data, which is not used any more */
} Nesting;

static _Thread_local Nesting nesting;

/* Runs code of the producer's, or of the owner's class. */
void mtf_release_memory(Tensor* self) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  void* managed = self->managed;
  PyObject* owner = self->owner;
  self->managed = NULL;
  self->owner = NULL;
  if (managed != NULL) self->release(managed);
  if (owner != NULL && self->is_view) mtf_let_go((Tensor*)owner);
  if (owner != NULL && !self->is_view) Py_DECREF(owner);
  PyErr_Restore(type, value, traceback);
}

int mtf_wait_for_work(Tensor* self, PyObject* stream) {
  PyObject* asked = (PyObject*)(self->needs_sync ? mtf_root(self) : self);
  PyObject* done = PyObject_CallMethod(asked, "_before_export", "(O)", stream);
  if (done == NULL) return -1;
  Py_DECREF(done);
  if (!self->is_ended) return 0;
  PyErr_SetString(PyExc_BufferError, "the tensor's memory was given back");
  return -1;
}

PyObject* mtf_end_memory(PyObject* object, PyObject* unused) {
  (void)unused;
  Tensor* self = (Tensor*)object;
  self->is_ended = true;
  self->needs_sync = true; /* every export asks `_before_export`, which refuses by its own error */
  mtf_release_if_unused(self);
  Py_RETURN_NONE;
}

static void destroy(Tensor* self) {
  PyTypeObject* type = Py_TYPE((PyObject*)self);
  mtf_release_memory(self);
  free(self->extents_on_heap);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

static Tensor* take_postponed(Nesting* here) {
  Tensor* next = here->postponed;
  if (next != NULL) here->postponed = next->dl.data;
  return next;
}

/* Chains of tensors and of other libraries' arrays may be of any length; the stack is not. */
void mtf_tensor_deallocate(PyObject* object) {
  Nesting* here = &nesting;
  Tensor* self = (Tensor*)object;
  PyObject_GC_UnTrack(object);
  if (here->depth == MOST_NESTED) {
    self->dl.data = here->postponed;
    here->postponed = self;
    return;
  }
  ++here->depth;
  destroy(self);
  while (here->depth == 1 && (self = take_postponed(here)) != NULL) destroy(self);
  --here->depth;
}

/* -- the interpreter's end -- */

static atomic_bool is_noted;
static pthread_t finalising; /* written before is_noted */

/* Python counts as not initialised while its modules are cleared, which destroys most objects. Its
 * thread states go last. */
bool mtf_can_take_gil(void) {
  if (Py_IsInitialized()) return true;
  return atomic_load(&is_noted) && pthread_equal(pthread_self(), finalising) &&
         PyGILState_GetThisThreadState() != NULL;
}

/* note_interpreter_ends(): for atexit, which calls it on the thread that finalises. */
static PyObject* mtf_note_interpreter_ends(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  finalising = pthread_self();
  atomic_store(&is_noted, true);
  Py_RETURN_NONE;
}

/* -- owners of C memory -- */

static const char kName[] = "modular_tf.owned_pointer";

static void free_pointer(PyObject* capsule) {
  void (*const free_it)(void*) = (void (*)(void*))(uintptr_t)PyCapsule_GetContext(capsule);
  void* const pointer = PyCapsule_GetPointer(capsule, kName);
  Py_BEGIN_ALLOW_THREADS
  free_it(pointer);
  Py_END_ALLOW_THREADS
}

PyObject* mtf_own(void* pointer, void (*free_it)(void*)) {
  /* The destructor comes last: it must not run without the function. */
  PyObject* capsule = PyCapsule_New(pointer, kName, NULL);
  if (capsule == NULL) return NULL;
  if (PyCapsule_SetContext(capsule, (void*)(uintptr_t)free_it) < 0 ||
      PyCapsule_SetDestructor(capsule, free_pointer) < 0) {
    Py_DECREF(capsule);
    return NULL;
  }
  return capsule;
}

/* owned_pointer(address, free_address): such a capsule. */
static PyObject* mtf_owned_pointer(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
  (void)module;
  if (count != 2) {
    PyErr_Format(PyExc_TypeError, "owned_pointer() takes 2 arguments, found %zd", count);
    return NULL;
  }
  void* const pointer = PyLong_AsVoidPtr(arguments[0]);
  void* const free_it = PyErr_Occurred() ? NULL : PyLong_AsVoidPtr(arguments[1]);
  if (PyErr_Occurred()) return NULL;
  return mtf_own(pointer, (void (*)(void*))(uintptr_t)free_it);
}

/* The layout of TF_FileStatistics. The last member is a bool in C: what a plugin writes there may be
 * none, which must not be read as one. */
typedef struct {
  int64_t length;
  int64_t mtime_nsec;
  unsigned char is_directory;
} Statistics;

typedef struct mtf_filesystem mtf_filesystem;
typedef struct mtf_error mtf_error;
typedef mtf_error* (*StatPath)(mtf_filesystem* filesystem, const char* path, char* result);

/* The items are made first: the collector sees no tuple with holes. */
static PyObject* tuple_of(PyTypeObject* type, const Statistics* found) {
  PyObject* const items[] = {PyLong_FromLongLong(found->length),
                             PyLong_FromLongLong(found->mtime_nsec),
                             PyBool_FromLong(found->is_directory != 0)};
  PyObject* made = NULL;
  if (items[0] != NULL && items[1] != NULL) {
    made = ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 3);
  }
  for (Py_ssize_t i = 0; i < 3; ++i) {
    if (made == NULL) {
      Py_XDECREF(items[i]);
    } else {
      PyTuple_SetItem(made, i, items[i]); /* takes over the item */
    }
  }
  return made;
}

/* stat_path(function, filesystem, path, type): calls the function of core/filesystem.h, whose address is
 * given, and returns a `type`, a tuple of length, mtime_nsec and is_directory; or the address of the error,
 * which is then the caller's. */
static PyObject* mtf_call_stat_path(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
  (void)module;
  if (count != 4 || !PyType_Check(arguments[3]) ||
      !PyType_IsSubtype((PyTypeObject*)arguments[3], &PyTuple_Type)) {
    PyErr_SetString(PyExc_TypeError,
                    "stat_path() takes a function, a filesystem, a path and a type of tuples");
    return NULL;
  }
  const StatPath stat_path = (StatPath)(uintptr_t)PyLong_AsVoidPtr(arguments[0]);
  mtf_filesystem* const filesystem = PyLong_AsVoidPtr(arguments[1]);
  const char* const path = PyBytes_AsString(arguments[2]);
  if (PyErr_Occurred()) return NULL;
  Statistics found = {0};
  mtf_error* error;
  Py_BEGIN_ALLOW_THREADS
  error = stat_path(filesystem, path, (char*)&found);
  Py_END_ALLOW_THREADS
  if (error != NULL) return PyLong_FromVoidPtr(error);
  return tuple_of((PyTypeObject*)arguments[3], &found);
}

/* modular_tf.native._dlpack: tensors that other libraries take without a copy, and theirs. */

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
