/* Where a plugin's log lines go. */
#pragma once

#include "host_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Hands a line to the sink, without asking whether it is wanted. Stamps it with the time, and drops
 * newlines at the end of its text. [any thread] */
void mtf_log_line(const mtf_plugin_line* line);

/* A fatal line of a function that `caller` called; then abort(). */
void mtf_log_fatal(const char* text, const void* caller) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif
