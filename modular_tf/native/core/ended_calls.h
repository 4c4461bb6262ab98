/* What is told of a call into a plugin that ends the process, or that its user does not wait for. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From now on, a fatal signal that a thread raises while it is in a call into a plugin, and exit() in
 * such a call, are told on standard error: signal, plugin, call and what it was about. So are those
 * that a plugin's code raises outside of calls, in threads, exit handlers and destructors of its own:
 * the plugin is the one whose code is the innermost on the stack (mtf_plugin_has_code). And so is the
 * end of the main thread by pthread_cancel or pthread_exit in such a call. A note for the next process
 * is left in `directory`, which is copied; "" for none. Handlers that are there already run after
 * that. Signals that others sent are not told of, nor those that are ignored. Outside of calls a
 * forked child tells of itself once it has called this, too.
 *
 * The note is a JSON object in a file NAME.ended: what the plugin was recorded with (plugin_call.h),
 * then "call", "subject" in hexadecimal digits, "signal" and "status" (0 for none), "pid" and "time"
 * in seconds since 1970. The end of the main thread is signal 32, by which the C library cancels. No
 * note is left where a write-protected table of a plugin was overwritten: a call by it may end anywhere.
 *
 * A thread whose stack has run out reports nothing, unless it has another one for signals. Calls after
 * the first do nothing but give the directory, where there was none. 0 on success. */
int mtf_tell_of_ended_calls(const char* directory);

/* Gives the main thread, which calls this, a stack for signals. Where the end of that thread ends the
 * process, as in Python's program, which does not end it by pthread_exit, an end by pthread_cancel outside
 * of calls is reported from now on: plugins that can do it are named as possible, and no note is left.
 * 0 on success. */
int mtf_watch_main_thread(int ends_process);

/* Says that the process is about to call exit(). Where `most_milliseconds` is not 0, it ends so much
 * later at the latest, with the status that exit() was given: exit handlers and destructors of plugins
 * may hang. What hangs is told and noted as above, by signal 26. 0 on success. */
int mtf_process_exits(uint64_t most_milliseconds);

/* From now on, the second SIGINT of this process ends it at once by _exit(`status`), wherever its main
 * thread is, with a line on standard error that begins with `program`, which is copied, and names the
 * plugin whose call does not return. The first one tells that, if such a call is under way, and goes to
 * the handler that is there already. To be called by the main thread; again when others have replaced
 * the handler. Does nothing where SIGINT is ignored or has its default. 0 on success. */
int mtf_leave_on_second_interrupt(const char* program, int status);

#ifdef __cplusplus
}
#endif
