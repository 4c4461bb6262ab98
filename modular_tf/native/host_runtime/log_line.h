/* Where a plugin's log lines go, and which of them the environment asks for. */
#pragma once

#include "host_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The levels are read once, at the first line. [any thread] */

/* TF_CPP_MIN_LOG_LEVEL: lines below this severity are dropped. Default 0, which drops none. */
int mtf_min_log_level(void);

/* TF_CPP_MAX_VLOG_LEVEL: VLOG lines above this level are dropped. Default 0. */
int mtf_max_vlog_level(void);

/* Hands a line to the sink, without asking whether it is wanted. Stamps it with the time, and drops
 * newlines at the end of its text. [any thread] */
void mtf_log_line(const mtf_plugin_line* line);

/* A fatal line of a function that `caller` called; then abort(). */
void mtf_log_fatal(const char* text, const void* caller) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif
