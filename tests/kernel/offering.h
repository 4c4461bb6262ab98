/* What the plugins of kernels here share: definitions of operations, kernels, inputs and failures. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "modular_tf/kernels.h"
#include "modular_tf/ops.h"

typedef void* (*Create)(TF_OpKernelConstruction*);
typedef void (*Compute)(void*, TF_OpKernelContext*);
typedef void (*ComputeLater)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback*);
typedef void (*Delete)(void*);

static inline void define_all(const char* name, va_list specs) {
  TF_Status* status = TF_NewStatus();
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name);
  for (const char* spec; (spec = va_arg(specs, const char*)) != NULL;) {
    if (spec[0] == 'a') TF_OpDefinitionBuilderAddAttr(op, spec + 1);
    if (spec[0] == 'i') TF_OpDefinitionBuilderAddInput(op, spec + 1);
    if (spec[0] == 'o') TF_OpDefinitionBuilderAddOutput(op, spec + 1);
  }
  TF_OpDefinitionBuilderSetIsStateful(op, true);
  TF_RegisterOpDefinition(op, status);
  TF_DeleteStatus(status);
}

/* A stateful operation of specifications, each after its letter: a (attribute), i (input) or o
 * (output); the last argument of these functions is NULL. */
__attribute__((sentinel)) static inline void define(const char* name, ...) {
  va_list specs;
  va_start(specs, name);
  define_all(name, specs);
  va_end(specs);
}

/* A kernel of an operation that is defined. */
static inline void enter(const char* op, TF_KernelBuilder* builder) {
  TF_Status* status = TF_NewStatus();
  TF_RegisterKernelBuilder(op, builder, status);
  TF_DeleteStatus(status);
}

/* A kernel of the host for values T of one type. */
static inline void enter_for(const char* op, TF_DataType type, Compute compute) {
  TF_Status* status = TF_NewStatus();
  TF_KernelBuilder* builder = TF_NewKernelBuilder(op, "CPU", NULL, compute, NULL);
  TF_KernelBuilder_TypeConstraint(builder, "T", type, status);
  TF_DeleteStatus(status);
  enter(op, builder);
}

/* An operation, and a kernel of it on the host. */
__attribute__((sentinel)) static inline void offer(const char* name, Create create, Compute compute,
                                                   Delete its_delete, ...) {
  va_list specs;
  va_start(specs, its_delete);
  define_all(name, specs);
  va_end(specs);
  enter(name, TF_NewKernelBuilder(name, "CPU", create, compute, its_delete));
}

__attribute__((sentinel)) static inline void offer_asynchronous(const char* name, Create create,
                                                                ComputeLater compute,
                                                                Delete its_delete, ...) {
  va_list specs;
  va_start(specs, its_delete);
  define_all(name, specs);
  va_end(specs);
  enter(name, TF_NewAsyncKernelBuilder(name, "CPU", create, compute, its_delete));
}

static inline TF_Tensor* input(TF_OpKernelContext* context, int index, TF_Status* status) {
  TF_Tensor* tensor = NULL;
  TF_GetInput(context, index, &tensor, status);
  return tensor;
}

/* Lets the call fail with a status that is not OK, and deletes it. */
static inline void end(TF_OpKernelContext* context, TF_Status* status) {
  if (TF_GetCode(status) != TF_OK) TF_OpKernelContext_Failure(context, status);
  TF_DeleteStatus(status);
}
