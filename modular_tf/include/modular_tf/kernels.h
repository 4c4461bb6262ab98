/* Kernels: the functions of a plugin that compute an operation on a device.
 *
 * A plugin exports TF_InitKernel and registers its kernels there. For each node the host calls
 * `create` once, `compute` for each execution, from several threads at once, and `delete` at the end;
 * each of them gets what `create` returned. Handles of constructions and contexts are valid until the
 * function that was given them returns, of asynchronous kernels until `done` has been run.
 *
 * Statuses are the plugin's; a function that has one sets it. */
#ifndef MODULAR_TF_KERNELS_H_
#define MODULAR_TF_KERNELS_H_

#include "modular_tf/device.h"
#include "modular_tf/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Defined by the plugin; called once in a process, after SE_InitPlugin. */
TF_CAPI_EXPORT void TF_InitKernel(void);

typedef struct TF_KernelBuilder TF_KernelBuilder;
typedef struct TF_OpKernelConstruction TF_OpKernelConstruction;
typedef struct TF_OpKernelContext TF_OpKernelContext;
typedef struct TF_AsyncOpKernelDoneCallback TF_AsyncOpKernelDoneCallback;

/* -- registration -- */

/* A kernel of an operation for a type of device, such as "CPU"; "DEFAULT" for all types. `create` and
 * `delete` may be NULL. The caller owns the builder until it is registered. */
TF_CAPI_EXPORT extern TF_KernelBuilder* TF_NewKernelBuilder(
    const char* op_name, const char* device_type, void* (*create)(TF_OpKernelConstruction*),
    void (*compute)(void* kernel, TF_OpKernelContext*), void (*delete_kernel)(void* kernel));

/* The same for a kernel that may end after `compute` has returned, by running `done` exactly once. */
TF_CAPI_EXPORT extern TF_KernelBuilder* TF_NewAsyncKernelBuilder(
    const char* op_name, const char* device_type, void* (*create)(TF_OpKernelConstruction*),
    void (*compute)(void* kernel, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback* done),
    void (*delete_kernel)(void* kernel));
/* [any thread] */
TF_CAPI_EXPORT extern void TF_RunAsyncOpKernelDoneCallback(TF_AsyncOpKernelDoneCallback* done);

/* The kernel serves only nodes whose attribute is this type, or a list of this type alone. All
 * constraints must hold. UNIMPLEMENTED for types above 23. */
TF_CAPI_EXPORT extern void TF_KernelBuilder_TypeConstraint(TF_KernelBuilder* builder,
                                                           const char* attr_name, TF_DataType type,
                                                           TF_Status* status);
/* An input or output, by its name in the operation, is in host memory. */
TF_CAPI_EXPORT extern void TF_KernelBuilder_HostMemory(TF_KernelBuilder* builder,
                                                       const char* arg_name);
/* Of several kernels that fit, the one with the highest priority is used; by default 0. */
TF_CAPI_EXPORT extern void TF_KernelBuilder_Priority(TF_KernelBuilder* builder, int32_t priority);
/* The kernel is used only where it is asked for by this label. */
TF_CAPI_EXPORT extern void TF_KernelBuilder_Label(TF_KernelBuilder* builder, const char* label);
/* `kernel_name` is for people. The host owns the builder from here on. */
TF_CAPI_EXPORT extern void TF_RegisterKernelBuilder(const char* kernel_name,
                                                    TF_KernelBuilder* builder, TF_Status* status);
/* Of a builder that is not registered. NULL is allowed. */
TF_CAPI_EXPORT extern void TF_DeleteKernelBuilder(TF_KernelBuilder* builder);

/* -- construction: the attributes of a node; valid within `create` -- */

/* `list_size`: elements of a list, -1 for what is none. `total_size`: bytes of a string or of all
 * strings of a list, dimensions of a shape or of all shapes; else -1. */
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrSize(TF_OpKernelConstruction* construction,
                                                               const char* attr_name,
                                                               int32_t* list_size,
                                                               int32_t* total_size,
                                                               TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrType(TF_OpKernelConstruction* construction,
                                                               const char* attr_name,
                                                               TF_DataType* value,
                                                               TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrInt32(
    TF_OpKernelConstruction* construction, const char* attr_name, int32_t* value, TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrInt64(
    TF_OpKernelConstruction* construction, const char* attr_name, int64_t* value, TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrFloat(
    TF_OpKernelConstruction* construction, const char* attr_name, float* value, TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrBool(
    TF_OpKernelConstruction* construction, const char* attr_name, unsigned char* value,
    TF_Status* status);
/* Copies at most `max_length` bytes, without a NUL. */
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrString(
    TF_OpKernelConstruction* construction, const char* attr_name, char* value, size_t max_length,
    TF_Status* status);
/* The caller owns the tensor; NULL on failure. */
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrTensor(
    TF_OpKernelConstruction* construction, const char* attr_name, TF_Tensor** value,
    TF_Status* status);
/* Lists: at most `max_values` elements are copied. */
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrTypeList(
    TF_OpKernelConstruction* construction, const char* attr_name, TF_DataType* values,
    int max_values, TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrInt32List(
    TF_OpKernelConstruction* construction, const char* attr_name, int32_t* values, int max_values,
    TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrInt64List(
    TF_OpKernelConstruction* construction, const char* attr_name, int64_t* values, int max_values,
    TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrFloatList(
    TF_OpKernelConstruction* construction, const char* attr_name, float* values, int max_values,
    TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrBoolList(
    TF_OpKernelConstruction* construction, const char* attr_name, unsigned char* values,
    int max_values, TF_Status* status);
/* `values` and `lengths` describe the strings, which are packed into `storage` without NULs. */
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrStringList(
    TF_OpKernelConstruction* construction, const char* attr_name, char** values, size_t* lengths,
    int max_values, void* storage, size_t storage_size, TF_Status* status);
/* The caller owns the tensors. */
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrTensorList(
    TF_OpKernelConstruction* construction, const char* attr_name, TF_Tensor** values, int max_values,
    TF_Status* status);
/* `num_dims` must be the rank. */
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrTensorShape(
    TF_OpKernelConstruction* construction, const char* attr_name, int64_t* dims, size_t num_dims,
    TF_Status* status);
/* A serialized NameAttrList of the caller's. */
TF_CAPI_EXPORT extern TF_Buffer* TF_OpKernelConstruction_GetAttrFunction(
    TF_OpKernelConstruction* construction, const char* attr_name, TF_Status* status);
/* Leaves the status alone. */
TF_CAPI_EXPORT extern bool TF_OpKernelConstruction_HasAttr(TF_OpKernelConstruction* construction,
                                                           const char* attr_name,
                                                           TF_Status* status);
/* The name of the node; lives as long as the kernel. */
TF_CAPI_EXPORT extern TF_StringView TF_OpKernelConstruction_GetName(
    TF_OpKernelConstruction* construction);
/* A serialized NodeDef of the caller's. */
TF_CAPI_EXPORT extern TF_Buffer* TF_OpKernelConstruction_GetNodeDef(
    TF_OpKernelConstruction* construction, TF_Status* status);
/* The kernel cannot be made; the first failure counts. `create` still returns, and the host deletes. */
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction* construction,
                                                           TF_Status* status);

/* -- execution; valid within `compute` -- */

TF_CAPI_EXPORT extern int TF_NumInputs(TF_OpKernelContext* context);
TF_CAPI_EXPORT extern int TF_NumOutputs(TF_OpKernelContext* context);
/* A handle of the caller's on an input; OUT_OF_RANGE leaves `tensor` alone. */
TF_CAPI_EXPORT extern void TF_GetInput(TF_OpKernelContext* context, int index, TF_Tensor** tensor,
                                       TF_Status* status);

typedef struct TF_InputRange_Args {
  size_t struct_size;
  void* priv;
  int start;         /* out: the first tensor of the input */
  int stop;          /* out: the one after the last */
  TF_Status* status; /* in: the caller's */
} TF_InputRange_Args;
/* Which tensors an input of the operation, by its name, is. */
TF_CAPI_EXPORT extern void TF_InputRange(TF_OpKernelContext* context, const char* name,
                                         TF_InputRange_Args* args);
TF_CAPI_EXPORT extern TF_DataType TF_InputDatatype(TF_OpKernelContext* context, int index);
TF_CAPI_EXPORT extern TF_DataType TF_ExpectedOutputDataType(TF_OpKernelContext* context, int index);
TF_CAPI_EXPORT extern bool TF_IsHostMemoryInput(TF_OpKernelContext* context, int index,
                                                TF_Status* status);
TF_CAPI_EXPORT extern bool TF_IsHostMemoryOutput(TF_OpKernelContext* context, int index,
                                                 TF_Status* status);

/* Makes a tensor an output, which shares its memory; the handle stays the caller's. */
TF_CAPI_EXPORT extern void TF_SetOutput(TF_OpKernelContext* context, int index,
                                        const TF_Tensor* tensor, TF_Status* status);
/* Memory for an output, of the type that the operation says; the caller owns the handle. */
TF_CAPI_EXPORT extern TF_Tensor* TF_AllocateOutput(TF_OpKernelContext* context, int index,
                                                   TF_DataType type, const int64_t* dims,
                                                   int num_dims, size_t len, TF_Status* status);
/* The same, in the memory of an input that nobody else uses; `forwarded_input`, which may be NULL, gets
 * its index, or -1. */
TF_CAPI_EXPORT extern TF_Tensor* TF_ForwardInputOrAllocateOutput(
    TF_OpKernelContext* context, const int* candidate_input_indices,
    int num_candidate_input_indices, int output_index, const int64_t* output_dims,
    int output_num_dims, int* forwarded_input, TF_Status* status);
/* Memory for the length of the computation; the caller owns the handle. */
TF_CAPI_EXPORT extern TF_Tensor* TF_AllocateTemp(TF_OpKernelContext* context, TF_DataType type,
                                                 const int64_t* dims, int num_dims,
                                                 TF_AllocatorAttributes* attributes,
                                                 TF_Status* status);
/* A handle of the caller's on an output that was set. */
TF_CAPI_EXPORT extern TF_Tensor* TF_GetMutableOutput(TF_OpKernelContext* context, int index,
                                                     TF_Status* status);

/* The stream on which the kernel has to queue its work; FAILED_PRECONDITION and NULL on a CPU. */
TF_CAPI_EXPORT extern SP_Stream TF_GetStream(TF_OpKernelContext* context, TF_Status* status);
/* The computation failed; the first failure counts, and outputs are dropped. */
TF_CAPI_EXPORT extern void TF_OpKernelContext_Failure(TF_OpKernelContext* context,
                                                      TF_Status* status);

TF_CAPI_EXPORT extern int64_t TF_StepId(TF_OpKernelContext* context);
TF_CAPI_EXPORT extern int64_t TF_GetStepId(TF_OpKernelContext* context);
TF_CAPI_EXPORT extern uint64_t TF_GetFrameId(TF_OpKernelContext* context);
TF_CAPI_EXPORT extern int64_t TF_GetIterId(TF_OpKernelContext* context);
TF_CAPI_EXPORT extern int TF_GetDeviceId(TF_OpKernelContext* context);
TF_CAPI_EXPORT extern TF_StringView TF_GetDeviceName(TF_OpKernelContext* context);
TF_CAPI_EXPORT extern TF_StringView TF_GetOpKernelName(TF_OpKernelContext* context);
TF_CAPI_EXPORT extern TF_StringView TF_GetResourceMgrDefaultContainerName(
    TF_OpKernelContext* context);
TF_CAPI_EXPORT extern TF_StringView TF_GetOpKernelRequestedInput(TF_OpKernelContext* context,
                                                                 size_t index);
TF_CAPI_EXPORT extern int TF_GetGraphDefVersion(TF_OpKernelContext* context);

#ifdef __cplusplus
}
#endif
#endif
