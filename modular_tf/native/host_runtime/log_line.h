/* Where a plugin's log lines go. */
#ifndef MODULAR_TF_LOG_LINE_H_
#define MODULAR_TF_LOG_LINE_H_

#ifdef __cplusplus
extern "C" {
#endif

/* Hands a line to the sink, without asking whether it is wanted. Levels as in host_runtime.h. The
 * text may end in newlines, which are dropped. [any thread] */
void mtf_log_line(int level, const char* message);

/* mtf_log_line with level 3, then abort(). */
void mtf_log_fatal(const char* message) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif
#endif
