/* The definitions of ops that plugins have registered in this process. They are never taken back.
 *
 * Each is told as its canonical line, `Name|flags|attrs|inputs|outputs`. */
#pragma once

#include <stdint.h>

#include "modular_tf/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*mtf_shape_function)(TF_ShapeInferenceContext* context, TF_Status* status);

/* How many there are; they are numbered from 0 in the order of their registration. [any thread] */
int32_t mtf_op_definition_count(void);

/* The line of one; static storage. NULL where there is none of that number. [any thread] */
const char* mtf_op_definition_line(int32_t index);

/* The shape function of one; NULL where it has none. [any thread] */
mtf_shape_function mtf_op_definition_shape_function(int32_t index);

#ifdef __cplusplus
}
#endif
