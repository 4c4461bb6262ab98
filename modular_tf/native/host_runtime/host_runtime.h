/* What the host itself asks of its runtime library, looked up by name after dlopen. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One log line of a plugin. The receiver copies what it keeps. */
typedef struct mtf_plugin_line {
  int32_t level;       /* 0..3 for info, warning, error and fatal, -1 - n for VLOG(n) */
  int32_t line;        /* of the source file; 0 where the plugin does not say */
  int64_t time_ns;     /* since 1970; 0: not stamped yet */
  const char* file;    /* source file as the plugin names it, or NULL */
  const char* text;    /* no newline at its end */
  const void* caller;  /* an address in the code that wrote the line */
} mtf_plugin_line;

/* Receives a line on the plugin's own thread, several in parallel. Returns 0 to have it written to
 * stderr. After a fatal line the process aborts. */
typedef int (*mtf_log_sink)(const mtf_plugin_line* line);

/* Sends log lines to `sink` from now on; NULL: to stderr. TF_CPP_MIN_LOG_LEVEL and
 * TF_CPP_MAX_VLOG_LEVEL, as they were at the first line, drop lines before any sink sees them. The
 * old sink may still be at work on other threads when this returns. [any thread] */
void mtf_set_log_sink(mtf_log_sink sink);

/* Writes a line to stderr in the shape of TensorFlow's own. [any thread] */
void mtf_write_log_line(const mtf_plugin_line* line);

/* The version of modular_tf that this library was built from; static storage. [any thread] */
const char* mtf_runtime_version(void);

/* Where a plugin's log lines go, and which of them the environment asks for. */

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
