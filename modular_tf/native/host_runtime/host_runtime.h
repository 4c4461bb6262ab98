/* What the host itself asks of its runtime library, looked up by name after dlopen. */
#ifndef MODULAR_TF_HOST_RUNTIME_H_
#define MODULAR_TF_HOST_RUNTIME_H_

#ifdef __cplusplus
extern "C" {
#endif

/* Receives one log line of a plugin: level 0..3 for info, warning, error and fatal, -1 - n for
 * VLOG(n). The text has no newline at its end and lives until the function returns. Called on the
 * plugin's threads, in parallel. After a fatal line the process aborts. */
typedef void (*mtf_log_sink)(int level, const char* plugin_message);

/* Sends log lines to `sink` from now on; NULL: to stderr. TF_CPP_MIN_LOG_LEVEL and
 * TF_CPP_MAX_VLOG_LEVEL, as they were at the first line, drop lines before any sink sees them. The
 * old sink may still be at work on other threads when this returns. [any thread] */
void mtf_set_log_sink(mtf_log_sink sink);

/* The version of modular_tf that this library was built from; static storage. [any thread] */
const char* mtf_runtime_version(void);

#ifdef __cplusplus
}
#endif
#endif
