#include "import.h"

#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "lifetime.h"

static void release_versioned(void* pointer) {
  DLManagedTensorVersioned* managed = pointer;
  if (managed->deleter != NULL) managed->deleter(managed);
}

void mtf_discard_versioned(DLManagedTensorVersioned* managed) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  release_versioned(managed);
  PyErr_Restore(type, value, traceback);
}

static void release_legacy(void* pointer) {
  DLManagedTensor* managed = pointer;
  if (managed->deleter != NULL) managed->deleter(managed);
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

Tensor* mtf_adopt_versioned(DLManagedTensorVersioned* managed) {
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
  mtf_discard_versioned(managed);
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
    mtf_discard_versioned(managed);
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
  mtf_discard_versioned(managed);
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
