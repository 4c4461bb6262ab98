/* What the host's side of a worker asks Python. Each takes the GIL; build_core.py has cffi define
 * them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Starts a process for the worker, and returns the socket to it, which the caller gets; or -1, and why
 * not in `text`. `run` counts its processes. */
int mtf_upcall_worker_start(int64_t number, int64_t run, char* text, size_t room);

/* Says in `text` how the process ended, when it has. With `is_late` it is ended first. */
void mtf_upcall_worker_ended(int64_t number, int64_t run, int is_late, char* text, size_t room);

/* Runs the signal handlers that wait. 1: one raised an exception, in this or an earlier upcall, which is
 * kept for the caller. */
int mtf_upcall_worker_signals(void);

#ifdef __cplusplus
}
#endif
