/* What a consumer gets: managed tensors of both kinds, each of which keeps a Tensor alive. */
#pragma once

#include "tensor.h"

/* Names of capsules: compared by content, but kept by address, so they live as long as we do. */
extern const char mtf_legacy_name[];         /* dltensor */
extern const char mtf_used_legacy_name[];    /* used_dltensor */
extern const char mtf_versioned_name[];      /* dltensor_versioned */
extern const char mtf_used_versioned_name[]; /* used_dltensor_versioned */

/* A managed tensor, which is a use of the memory. Its deleter may run on any thread, with or without
 * the GIL; once the interpreter has ended, or ends on another thread, it leaks what only Python can
 * free. NULL with an exception. */
DLManagedTensorVersioned* mtf_managed_versioned(Tensor* self, uint64_t flags);

/* Tells whether a managed tensor is one of ours. */
bool mtf_is_our_versioned(const DLManagedTensorVersioned* managed);
bool mtf_is_our_legacy(const DLManagedTensor* managed);

/* A capsule that frees the managed tensor unless it is consumed. NULL with an exception. */
PyObject* mtf_versioned_capsule(Tensor* self, uint64_t flags);
PyObject* mtf_legacy_capsule(Tensor* self);
