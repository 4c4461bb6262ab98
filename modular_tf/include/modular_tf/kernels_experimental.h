/* Variables in kernels, and inputs by name. TensorFlow's own wheels for CPUs lost these functions after
 * 2.16; this host offers them still.
 *
 * A variable is named by the index of the input that refers to it. `copy` copies one tensor of the
 * device over another; `update` adds (0) or subtracts (1) a value. */
#ifndef MODULAR_TF_KERNELS_EXPERIMENTAL_H_
#define MODULAR_TF_KERNELS_EXPERIMENTAL_H_

#include "modular_tf/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_VariableInputLockHolder TF_VariableInputLockHolder;
typedef void (*TF_TensorCopy)(TF_OpKernelContext* context, TF_Tensor* source, TF_Tensor* dest);
typedef void (*TF_TensorUpdate)(TF_OpKernelContext* context, TF_Tensor* tensor, TF_Tensor* value,
                                int operation);

/* The variable gets the value of another input; it is made where it is not there. */
TF_CAPI_EXPORT extern void TF_AssignVariable(TF_OpKernelContext* context, int input_index,
                                             int value_index, bool validate_shape,
                                             TF_TensorCopy copy, TF_Status* status);
TF_CAPI_EXPORT extern void TF_AssignRefVariable(TF_OpKernelContext* context, int input_ref_index,
                                                int output_ref_index, int value_index,
                                                bool use_locking, bool validate_shape,
                                                TF_TensorCopy copy, TF_Status* status);
/* Adds a value to a variable (operation 0) or subtracts it (1). */
TF_CAPI_EXPORT extern void TF_AssignUpdateVariable(TF_OpKernelContext* context, int input_index,
                                                   int value_index, int operation,
                                                   int is_variant_type, TF_TensorCopy copy,
                                                   TF_TensorUpdate update, TF_Status* status);
/* A handle of the caller's on the variable's tensor, which nobody else uses then. */
TF_CAPI_EXPORT extern void TF_GetInputTensorFromVariable(TF_OpKernelContext* context,
                                                         int input_index, bool lock_held,
                                                         bool is_variant_type, bool sparse,
                                                         TF_TensorCopy copy, TF_Tensor** tensor,
                                                         TF_Status* status);
/* Locks the variables of some inputs in an order that cannot deadlock. */
TF_CAPI_EXPORT extern void TF_MaybeLockVariableInputMutexesInOrder(
    TF_OpKernelContext* context, bool do_lock, bool sparse, const int* input_indices, size_t count,
    TF_TensorCopy copy, TF_VariableInputLockHolder** holder, TF_Status* status);
TF_CAPI_EXPORT extern void TF_ReleaseVariableInputLockHolder(TF_VariableInputLockHolder* holder);
TF_CAPI_EXPORT extern void TF_TemporaryVariable(
    TF_OpKernelContext* context, TF_DataType type, const int64_t* dims, int num_dims,
    TF_StringView* name,
    void (*allocate)(TF_OpKernelContext*, TF_Tensor*, TF_DataType, const int64_t*, int, TF_Status*),
    TF_Status* status);
TF_CAPI_EXPORT extern void TF_DestroyTemporaryVariable(TF_OpKernelContext* context, int index,
                                                       TF_StringView* name, TF_Status* status);
TF_CAPI_EXPORT extern bool TF_IsRefInput(TF_OpKernelContext* context, int index, TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelContext_ForwardRefInputToRefOutput(TF_OpKernelContext* context,
                                                                         int32_t input_index,
                                                                         int32_t output_index);
/* A handle of the caller's on an input that is one tensor. */
TF_CAPI_EXPORT extern void TF_GetInputByName(TF_OpKernelContext* context, const char* name,
                                             TF_Tensor** tensor, TF_Status* status);

#ifdef __cplusplus
}
#endif
#endif
