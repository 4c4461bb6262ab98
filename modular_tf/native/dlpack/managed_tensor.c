#include "managed_tensor.h"

#include <stdlib.h>
#include <string.h>

#include "interpreter_end.h"
#include "lifetime.h"

const char mtf_legacy_name[] = "dltensor";
const char mtf_used_legacy_name[] = "used_dltensor";
const char mtf_versioned_name[] = "dltensor_versioned";
const char mtf_used_versioned_name[] = "used_dltensor_versioned";

/* Leaks if Python cannot run any more. */
static void release(void* managed, Tensor* tensor) {
  if (!mtf_can_take_gil()) return;
  const PyGILState_STATE state = PyGILState_Ensure();
  free(managed);
  mtf_let_go(tensor);
  PyGILState_Release(state);
}

static void delete_versioned(DLManagedTensorVersioned* managed) {
  release(managed, managed->manager_ctx);
}

static void delete_legacy(DLManagedTensor* managed) { release(managed, managed->manager_ctx); }

bool mtf_is_our_versioned(const DLManagedTensorVersioned* managed) {
  return managed->deleter == delete_versioned;
}

bool mtf_is_our_legacy(const DLManagedTensor* managed) { return managed->deleter == delete_legacy; }

/* One block for a managed tensor and its shape and strides, which consumers may keep longer than
 * the Tensor has its present ones. */
static void* new_block(const Tensor* self, size_t size_of_managed) {
  void* block = malloc(size_of_managed + 2 * (size_t)self->dl.ndim * sizeof(int64_t));
  if (block == NULL) PyErr_NoMemory();
  return block;
}

/* Returns whose memory it is, in use from now on. */
static Tensor* fill(Tensor* self, DLTensor* dl, int64_t* extents) {
  const size_t n = (size_t)self->dl.ndim;
  *dl = self->dl;
  if (n > 0) {
    memcpy(extents, self->dl.shape, n * sizeof(int64_t));
    memcpy(extents + n, self->dl.strides, n * sizeof(int64_t));
    dl->shape = extents;
    dl->strides = extents + n;
  }
  Tensor* root = mtf_root(self);
  mtf_hold(root);
  return root;
}

DLManagedTensorVersioned* mtf_managed_versioned(Tensor* self, uint64_t flags) {
  DLManagedTensorVersioned* managed = new_block(self, sizeof *managed);
  if (managed == NULL) return NULL;
  managed->version = (DLPackVersion){DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed->deleter = delete_versioned;
  managed->flags = flags | (self->is_mutability_unknown ? MTF_READ_ONLY : 0);
  managed->manager_ctx = fill(self, &managed->dl_tensor, (int64_t*)(managed + 1));
  return managed;
}

static DLManagedTensor* managed_legacy(Tensor* self) {
  DLManagedTensor* managed = new_block(self, sizeof *managed);
  if (managed == NULL) return NULL;
  managed->deleter = delete_legacy;
  managed->manager_ctx = fill(self, &managed->dl_tensor, (int64_t*)(managed + 1));
  return managed;
}

/* A consumed capsule bears another name. A destructor may run with an exception pending. */
static void* take_unused(PyObject* capsule, const char* name) {
  return PyCapsule_IsValid(capsule, name) ? PyCapsule_GetPointer(capsule, name) : NULL;
}

static void destroy_versioned_capsule(PyObject* capsule) {
  DLManagedTensorVersioned* managed = take_unused(capsule, mtf_versioned_name);
  if (managed == NULL || managed->deleter == NULL) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  managed->deleter(managed);
  PyErr_Restore(type, value, traceback);
}

static void destroy_legacy_capsule(PyObject* capsule) {
  DLManagedTensor* managed = take_unused(capsule, mtf_legacy_name);
  if (managed == NULL || managed->deleter == NULL) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  managed->deleter(managed);
  PyErr_Restore(type, value, traceback);
}

PyObject* mtf_versioned_capsule(Tensor* self, uint64_t flags) {
  DLManagedTensorVersioned* managed = mtf_managed_versioned(self, flags);
  if (managed == NULL) return NULL;
  PyObject* capsule = PyCapsule_New(managed, mtf_versioned_name, destroy_versioned_capsule);
  if (capsule == NULL) delete_versioned(managed);
  return capsule;
}

PyObject* mtf_legacy_capsule(Tensor* self) {
  DLManagedTensor* managed = managed_legacy(self);
  if (managed == NULL) return NULL;
  PyObject* capsule = PyCapsule_New(managed, mtf_legacy_name, destroy_legacy_capsule);
  if (capsule == NULL) delete_legacy(managed);
  return capsule;
}
