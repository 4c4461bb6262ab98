/* The definitions of ops that plugins have registered in this process. They are never taken back.
 *
 * Each is a record as its plugin gave it, which `modular_tf.kernel.op_grammar` reads. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How many there are; they are numbered from 0 in the order of their registration. [any thread] */
int32_t mtf_op_definition_count(void);

/* The record of one; static storage, `*size` bytes. NULL where there is none of that number. [any thread] */
const char* mtf_op_definition_record(int32_t index, size_t* size);

#ifdef __cplusplus
}
#endif
