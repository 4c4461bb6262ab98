/* Where a process that tries a plugin is when it ends or hangs, told through a pipe.
 *
 * One JSON object a line: {"thread": NUMBER}, as the kernel counts threads; then {"signal": NUMBER,
 * "errno": NUMBER, "overflow": 0|1}, {"exits": STATUS} or {"asked": 1}; then, the innermost first, {"frame": [FILE, SYMBOL, OFFSET]} with FILE and SYMBOL in
 * hexadecimal digits (of bytes), SYMBOL empty where none is known and OFFSET then from the start of
 * the file's mapping; then {"traced": 1}. Where several threads crash, the report is the first one's,
 * and the others wait for its end.
 *
 * A thread whose stack has run out tells nothing unless it has another one for signals. The main
 * thread gets that here; the others have it where the process was started with the library of
 * signal_stacks, which says which threads those are. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
