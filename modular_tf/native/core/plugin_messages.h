/* What plugins log, on its way to Python.
 *
 * A plugin's thread never enters Python and never waits for it: its line is copied into a bounded
 * queue, from which one thread of Python's takes it. What does not fit is dropped and counted;
 * warnings and errors have a quarter of the room for themselves. While nobody listens, lines go to
 * stderr as if this did not exist. Lines that nobody has fetched when the process ends, by a fatal
 * line or by exit(), are written to stderr then; those of a fork's parent are the parent's alone. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mtf_plugin_message {
  int32_t level;         /* 0..3 for info, warning, error and fatal, -1 - n for VLOG(n) */
  int32_t source_line;   /* 0 where the plugin does not say */
  int64_t time_ns;       /* when it was written, since 1970 */
  int64_t thread;        /* the writing thread, as the system numbers it */
  const void* caller;    /* an address in the code that wrote it */
  const char* source;    /* source file as the plugin names it, or NULL */
  const char* text;      /* bytes as the plugin wrote them */
} mtf_plugin_message;

/* Puts the queue between plugins and stderr. The arguments are the addresses of `mtf_set_log_sink`
 * and `mtf_write_log_line` in the host runtime. */
void mtf_plugin_messages_attach(void* set_log_sink, void* write_log_line);

/* From now on lines are queued. Those of a level below `least_level` are dropped without a count,
 * since nobody would see them. May be called again to change the level. */
void mtf_plugin_messages_open(int32_t least_level);

/* From now on lines go to stderr again; queued ones can still be fetched. */
void mtf_plugin_messages_close(void);

/* Waits for a line and returns it; it lives until the thread's next call, which also says that this
 * one was dealt with. NULL when it was interrupted, or when the queue is empty and closed or lines
 * were dropped; a thread goes on until it gets that. [any thread] */
const mtf_plugin_message* mtf_plugin_messages_next(void);

/* Lets `mtf_plugin_messages_next` return NULL, in every thread, until lines are queued from anew
 * (`mtf_plugin_messages_open`); no line is lost. */
void mtf_plugin_messages_interrupt(void);

/* How many lines were dropped for want of room since the last call. */
uint64_t mtf_plugin_messages_dropped(void);

/* How many lines the queue holds at most. */
enum { MTF_PLUGIN_MESSAGES_MOST = 65536 };

#ifdef __cplusplus
}
#endif
