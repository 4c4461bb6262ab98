/* The definitions of ops that plugins have registered in this process. They are never taken back.
 *
 * Each is told as its canonical line, `Name|flags|attrs|inputs|outputs`. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How many there are; they are numbered from 0 in the order of their registration. [any thread] */
int32_t mtf_op_definition_count(void);

/* The line of one; static storage. NULL where there is none of that number. [any thread] */
const char* mtf_op_definition_line(int32_t index);

#ifdef __cplusplus
}
#endif
