/* Running the shape functions that came with definitions of ops.
 *
 * The host runs kernels one by one and needs none for that; they are run for who asks. */
#pragma once

#include <stdint.h>

#include "op_definition.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MTF_MOST_DIMENSIONS = 254 };

typedef struct mtf_known_shape {
  int32_t rank;        /* -1: unknown */
  const int64_t* dims; /* -1: unknown */
} mtf_known_shape;

typedef struct mtf_type_attr {
  const char* name;
  int32_t type; /* TF_DataType */
} mtf_type_attr;

typedef struct mtf_inferred_shape {
  int32_t rank; /* -1: unknown, or the function did not set it */
  int64_t dims[MTF_MOST_DIMENSIONS];
} mtf_inferred_shape;

typedef struct mtf_shape_request {
  const mtf_known_shape* inputs;
  const mtf_type_attr* type_attrs;
  mtf_inferred_shape* outputs; /* filled */
  int32_t num_inputs, num_type_attrs, num_outputs;
} mtf_shape_request;

/* Runs a shape function. The outputs are those of a status that is OK; else it says why, also for
 * an exception and for the misuse of a handle. [any thread, several at once] */
void mtf_infer_shapes(mtf_shape_function function, const mtf_shape_request* request,
                      TF_Status* status);

#ifdef __cplusplus
}
#endif
