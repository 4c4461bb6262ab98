/* Definitions of operations: what their inputs, outputs and attributes are.
 *
 * Specifications are text: "T: {float, int32} = DT_FLOAT" for an attribute, "values: N * T" for an
 * input or output. A shape function says what shape outputs have; hosts that execute kernels one by one
 * need none. */
#ifndef MODULAR_TF_OPS_H_
#define MODULAR_TF_OPS_H_

#include "modular_tf/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_OpDefinitionBuilder TF_OpDefinitionBuilder;
typedef struct TF_ShapeInferenceContext TF_ShapeInferenceContext;
typedef struct TF_ShapeHandle TF_ShapeHandle;
typedef struct TF_DimensionHandle TF_DimensionHandle;

/* `op_name` is in CamelCase, and is copied. The caller owns the builder until it is registered. */
TF_CAPI_EXPORT extern TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(const char* op_name);
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder* builder,
                                                         const char* attr_spec);
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder* builder,
                                                          const char* input_spec);
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder* builder,
                                                           const char* output_spec);
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderSetIsCommutative(TF_OpDefinitionBuilder* builder,
                                                                  bool is_commutative);
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderSetIsAggregate(TF_OpDefinitionBuilder* builder,
                                                                bool is_aggregate);
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderSetIsStateful(TF_OpDefinitionBuilder* builder,
                                                               bool is_stateful);
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderSetAllowsUninitializedInput(
    TF_OpDefinitionBuilder* builder, bool allows_uninitialized_input);
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderDeprecated(TF_OpDefinitionBuilder* builder,
                                                            int version, const char* explanation);
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderSetShapeInferenceFunction(
    TF_OpDefinitionBuilder* builder, void (*infer)(TF_ShapeInferenceContext*, TF_Status*));
/* The host owns the builder from here on. TensorFlow ends the process for a bad specification or a name
 * that is taken; this host sets INVALID_ARGUMENT or ALREADY_EXISTS. */
TF_CAPI_EXPORT extern void TF_RegisterOpDefinition(TF_OpDefinitionBuilder* builder,
                                                   TF_Status* status);
/* Of a builder that is not registered. NULL is allowed. */
TF_CAPI_EXPORT extern void TF_DeleteOpDefinitionBuilder(TF_OpDefinitionBuilder* builder);

/* A serialized OpList of the caller's; here always empty. */
TF_CAPI_EXPORT extern TF_Buffer* TF_GetAllOpList(void);
/* A serialized KernelList of the caller's; here always empty. */
TF_CAPI_EXPORT extern TF_Buffer* TF_GetRegisteredKernelsForOp(const char* op_name,
                                                              TF_Status* status);
/* Whether an operation that was registered here is stateful: 0 or 1; 0 and NOT_FOUND for others. */
TF_CAPI_EXPORT extern int TF_OpIsStateful(const char* op_name, TF_Status* status);

/* -- shape functions: handles are the caller's; a handle that is a result exists before the call -- */

TF_CAPI_EXPORT extern int64_t TF_ShapeInferenceContextNumInputs(TF_ShapeInferenceContext* context);
TF_CAPI_EXPORT extern TF_ShapeHandle* TF_NewShapeHandle(void);
TF_CAPI_EXPORT extern void TF_DeleteShapeHandle(TF_ShapeHandle* handle);
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextGetInput(TF_ShapeInferenceContext* context,
                                                            int index, TF_ShapeHandle* handle,
                                                            TF_Status* status);
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext* context,
                                                             int index, TF_ShapeHandle* handle,
                                                             TF_Status* status);
TF_CAPI_EXPORT extern TF_ShapeHandle* TF_ShapeInferenceContextScalar(
    TF_ShapeInferenceContext* context);
TF_CAPI_EXPORT extern TF_ShapeHandle* TF_ShapeInferenceContextVectorFromSize(
    TF_ShapeInferenceContext* context, size_t size);
TF_CAPI_EXPORT extern TF_DimensionHandle* TF_NewDimensionHandle(void);
TF_CAPI_EXPORT extern void TF_DeleteDimensionHandle(TF_DimensionHandle* handle);
TF_CAPI_EXPORT extern void TF_ShapeInferenceContext_GetAttrType(TF_ShapeInferenceContext* context,
                                                                const char* attr_name,
                                                                TF_DataType* value,
                                                                TF_Status* status);
/* -1: unknown. */
TF_CAPI_EXPORT extern int64_t TF_ShapeInferenceContextRank(TF_ShapeInferenceContext* context,
                                                           TF_ShapeHandle* handle);
TF_CAPI_EXPORT extern int TF_ShapeInferenceContextRankKnown(TF_ShapeInferenceContext* context,
                                                            TF_ShapeHandle* handle);
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextWithRank(TF_ShapeInferenceContext* context,
                                                            TF_ShapeHandle* handle, int64_t rank,
                                                            TF_ShapeHandle* result,
                                                            TF_Status* status);
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextWithRankAtLeast(TF_ShapeInferenceContext* context,
                                                                   TF_ShapeHandle* handle,
                                                                   int64_t rank,
                                                                   TF_ShapeHandle* result,
                                                                   TF_Status* status);
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextWithRankAtMost(TF_ShapeInferenceContext* context,
                                                                  TF_ShapeHandle* handle,
                                                                  int64_t rank,
                                                                  TF_ShapeHandle* result,
                                                                  TF_Status* status);
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextDim(TF_ShapeInferenceContext* context,
                                                       TF_ShapeHandle* shape, int64_t index,
                                                       TF_DimensionHandle* result);
/* From `start` to before `end`; negative numbers count from the end. */
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextSubshape(TF_ShapeInferenceContext* context,
                                                            TF_ShapeHandle* shape, int64_t start,
                                                            int64_t end, TF_ShapeHandle* result,
                                                            TF_Status* status);
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext* context,
                                                                   TF_Status* status);
TF_CAPI_EXPORT extern int TF_DimensionHandleValueKnown(TF_DimensionHandle* handle);
/* -1: unknown. */
TF_CAPI_EXPORT extern int64_t TF_DimensionHandleValue(TF_DimensionHandle* handle);
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextConcatenateShapes(
    TF_ShapeInferenceContext* context, TF_ShapeHandle* first, TF_ShapeHandle* second,
    TF_ShapeHandle* result, TF_Status* status);

#ifdef __cplusplus
}
#endif
#endif
