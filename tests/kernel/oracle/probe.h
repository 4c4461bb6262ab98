/* What the files of the probe share: ops and kernels that record what the host answers. */
#pragma once

#include "modular_tf/kernels.h"
#include "modular_tf/ops.h"
#include "modular_tf/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -- records: lines of the file that MTF_PROBE_LOG names, as "key<TAB>answer" -- */

__attribute__((format(printf, 2, 3))) void record(const char* key, const char* format, ...);

/* The status and what was answered; then the status is OK again. */
__attribute__((format(printf, 3, 4))) void record_status(const char* key, TF_Status* status,
                                                         const char* format, ...);

/* Text that lives until sixteen more of the thread were made. */
__attribute__((format(printf, 1, 2))) const char* text(const char* format, ...);

/* A status that is not OK, to see whether a call sets it. */
TF_Status* earlier_failure(void);

/* Type, dimensions, bytes and whether the data is aligned. */
const char* described(const TF_Tensor* tensor);

/* -- cases: what a kernel does is chosen by the attribute "case" of its node -- */

typedef struct ProbeCase {
  const char* name;
  void (*run)(TF_OpKernelContext* context);
} ProbeCase;

/* The case of a node, which is its kernel object; NULL where there is none. A table ends with a case
 * without a name. */
void* find_case(TF_OpKernelConstruction* construction, const ProbeCase* cases);
/* Runs it. */
void compute_case(void* found, TF_OpKernelContext* context);

/* Makes each output that is not set a vector of one zero; errors are not recorded. */
void finish(TF_OpKernelContext* context);

/* -- registration -- */

/* TensorFlow 2.21 has it no more: NULL there, and nothing is recorded. */
extern __typeof__(TF_OpKernelConstruction_GetAttrTensorShape)
    TF_OpKernelConstruction_GetAttrTensorShape __attribute__((weak));

typedef void* (*CreateKernel)(TF_OpKernelConstruction*);
typedef void (*ComputeKernel)(void*, TF_OpKernelContext*);
typedef void (*DeleteKernel)(void*);

/* A stateful op; each list ends with NULL. */
void define_op(const char* name, const char* const* attrs, const char* const* inputs,
               const char* const* outputs);
void register_kernel(const char* op, CreateKernel create, ComputeKernel compute,
                     DeleteKernel delete_kernel);

void register_registration_probe(void);
void register_selection_probe(void);
void register_attribute_probe(void);
void register_execution_probe(void);
void register_forwarding_probe(void);
void register_tensor_probe(void);
void register_async_probe(void);
void register_lifetime_probe(void);

extern const ProbeCase kOutputCases[];
void throw_from_compute(TF_OpKernelContext* context);

#ifdef __cplusplus
}
#endif
