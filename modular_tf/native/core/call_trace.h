/* A trace of the calls into plugins: one event per call, in the JSON array format that Chrome's and
 * Perfetto's viewers read. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From now on, each call into a plugin that ends is written to `file`, which is open for writing and is
 * emptied, by the thread that made it. It stays the caller's, who keeps it open until mtf_trace_end. A
 * regular file holds a whole JSON array after each event, whatever ends the process. A forked child
 * writes nothing. Returns the number of the trace, which is never 0; 0 and `*failure`, an errno: EBUSY
 * where a trace is under way, else that of the first write. [any thread] */
uint64_t mtf_trace_begin(int file, int* failure);

/* Ends a trace and its file's JSON array. Nothing happens where it is that of a parent process. Returns
 * the errno of the write that failed, after which no event was written; 0 where all were. [any thread] */
int mtf_trace_end(uint64_t number);

#ifdef __cplusplus
}
#endif
