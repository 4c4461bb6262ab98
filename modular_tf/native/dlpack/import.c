#include "import.h"

#include "managed_tensor.h"

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

static Tensor* adopt(const DLTensor* dl, uint64_t flags, bool is_ours, void* managed,
                     void (*release)(void*)) {
  /* kDLExtDev means another device to every maker: a foreign number proves nothing. */
  if (dl->device.device_type == kDLExtDev && !is_ours) {
    PyErr_Format(PyExc_BufferError,
                 "device (12, %d), kDLExtDev, of another producer has no meaning here; ask that "
                 "producer for host memory",
                 (int)dl->device.device_id);
    return NULL;
  }
  Tensor* self = mtf_tensor_new();
  if (self == NULL) return NULL;
  if (mtf_tensor_describe(self, dl, flags, PyExc_BufferError) < 0) {
    Py_DECREF((PyObject*)self);
    return NULL;
  }
  self->managed = managed;
  self->release = release;
  return self;
}

Tensor* mtf_adopt_versioned(DLManagedTensorVersioned* managed) {
  const uint64_t known =
      DLPACK_FLAG_READ_ONLY | DLPACK_FLAG_IS_COPIED | DLPACK_FLAG_SUBBYTE_PADDED;
  if (managed->version.major != DLPACK_MAJOR) {
    PyErr_Format(PyExc_BufferError, "expected DLPack %d, found %u.%u", (int)DLPACK_MAJOR,
                 (unsigned)managed->version.major, (unsigned)managed->version.minor);
    return NULL;
  }
  return adopt(&managed->dl_tensor, managed->flags & known, mtf_is_our_versioned(managed), managed,
               release_versioned);
}

static Tensor* adopt_legacy(DLManagedTensor* managed) {
  Tensor* self =
      adopt(&managed->dl_tensor, 0, mtf_is_our_legacy(managed), managed, release_legacy);
  if (self != NULL) self->is_mutability_unknown = true;
  return self;
}

/* Renaming cannot fail on a valid capsule; where it did, the capsule would free too. */
static PyObject* mark_used(PyObject* capsule, const char* name, Tensor* self) {
  if (self == NULL) return NULL;
  if (PyCapsule_SetName(capsule, name) < 0) {
    self->managed = NULL;
    Py_CLEAR(self);
  }
  return (PyObject*)self;
}

PyObject* mtf_consume(PyObject* module, PyObject* capsule) {
  (void)module;
  if (PyCapsule_IsValid(capsule, mtf_versioned_name)) {
    Tensor* self = mtf_adopt_versioned(PyCapsule_GetPointer(capsule, mtf_versioned_name));
    return mark_used(capsule, mtf_used_versioned_name, self);
  }
  if (PyCapsule_IsValid(capsule, mtf_legacy_name)) {
    Tensor* self = adopt_legacy(PyCapsule_GetPointer(capsule, mtf_legacy_name));
    return mark_used(capsule, mtf_used_legacy_name, self);
  }
  const bool is_used = PyCapsule_IsValid(capsule, mtf_used_versioned_name) ||
                       PyCapsule_IsValid(capsule, mtf_used_legacy_name);
  return PyErr_Format(PyExc_ValueError, "expected a DLPack capsule that nobody consumed, found %s%R",
                      is_used ? "a consumed one: " : "", capsule);
}
