/* How a process ends that has libraries whose destructors it must not run; a child that ends; and
 * what is written out before. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

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
