#include "import.h"

#include <stdlib.h>

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
