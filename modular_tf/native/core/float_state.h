/* Floating-point control state: rounding, denormal numbers, and which exceptions end the process. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* What calls into plugins have changed in this process, on any thread, and what was undone when they
 * returned: 1 exceptions, 2 denormal numbers, 4 rounding or precision; added. [any thread] */
int mtf_undone_float_changes(void);

#ifdef __cplusplus
}
#endif
