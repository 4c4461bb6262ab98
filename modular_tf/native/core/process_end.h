/* How this process ends, and what is reported of it: fatal signals, exit(), interrupts, the end of the main
 * thread; and what a process that ends has to leave undone. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- a process that tries a plugin ----------------------------------------------------------------
 *
 * Where it is when it ends or hangs, reported through a pipe: one JSON object a line, {"thread":
 * NUMBER}, as the kernel counts threads; then {"signal": NUMBER, "errno": NUMBER, "overflow": 0|1},
 * {"exits": STATUS} or {"asked": 1}; then, the innermost first, {"frame": [FILE, SYMBOL, OFFSET]} with
 * FILE and SYMBOL in hexadecimal digits (of bytes), SYMBOL empty where none is known and OFFSET then
 * from the start of the file's mapping; then {"traced": 1}. Where several threads crash, the report is
 * the first one's, and the others wait for its end.
 *
 * A thread whose stack has run out reports nothing unless it has another one for signals. The main
 * thread gets that here; the others have it where the process was started with the library of
 * native/watched, which says which threads those are. */

/* From now on, signals that end this process, and exit(), are told on the descriptor `report`
 * first; and the signal `question` is answered with where the main thread is, if the process that
 * started this one sends it by kill(). Sent by anybody else it ends the process. Children that are
 * forked later tell nothing. To be called once, by the main thread. 0 on success. */
int mtf_report_crashes(int report, int question);

/* From now on, exit(`status`) is what this process means to do, and is reported no more; another
 * status is. To be called after mtf_report_crashes, by the main thread. */
void mtf_expect_exit(int status);

/* Writes down the handler's address of each signal below `count`: 0 for the default action, 1 where
 * it is ignored; 0 for what is no signal, and for the handlers of mtf_report_crashes, which stand
 * for the default action. [any thread] */
void mtf_signal_handlers(uintptr_t* handlers, int count);

/* -- a process that uses plugins ------------------------------------------------------------------ */

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

/* -- a process that ends -------------------------------------------------------------------------- */

/* For a forked child: `exit` still flushes C's streams and reports its status, but runs none of the
 * C and C++ exit handlers that were registered before this call. Those of libraries loaded later
 * run. Returns 0, or -1 where it cannot be arranged. */
int mtf_exit_without_inherited_destructors(void);

/* Writes out what standard output of the C library holds, unless another thread holds the stream:
 * that may be for ever. [any thread] */
void mtf_flush_output(void);

/* Starts a child that ends with status 0 at once, and returns its number; its status waits for
 * whoever asks for it. No function that was registered for forks runs. Returns -1 where no process
 * can be started. [any thread] */
int mtf_start_ended_child(void);

#ifdef __cplusplus
}
#endif
