/* Host callbacks that run Python, on threads that Python has made.
 *
 * A plugin's thread never enters Python: the function that the plugin calls puts a job into its
 * stream's queue, where a worker thread of Python's waits, and sleeps until the worker has said how
 * it went. So neither the GIL nor the end of the interpreter can stop a plugin's thread for ever,
 * and no exception leaves through the plugin. Plugins are given a number, not a pointer: one that
 * calls twice, or late, or although it said that it would not, does no harm.
 *
 * All functions may run on any thread. */
#pragma once

#include <stdint.h>

#include "error.h"
#include "executor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mtf_callback_queue mtf_callback_queue;

/* One queue per stream; NULL when there is no memory. */
mtf_callback_queue* mtf_callback_queue_new(void);
void mtf_callback_queue_free(mtf_callback_queue* queue);

enum { MTF_CALLBACK_ENQUEUED = 0, MTF_CALLBACK_RUN_NOW = 1, MTF_CALLBACK_REFUSED = 2 };

/* A number for one job that will be enqueued; 0 where memory has run out. */
uint64_t mtf_callback_new(mtf_callback_queue* queue);
/* Has the stream call the job when it gets there. `outcome`: RUN_NOW when the plugin has called it
 * before its function returned, then the caller is to run it; REFUSED when the plugin said no. The
 * job is over in both cases, and when this fails. */
mtf_error* mtf_callback_enqueue(mtf_stream* stream, uint64_t job, int32_t* outcome);
/* Waits for a stream to get to a job of the queue; its number, or 0 when the time is over or
 * callbacks have ended. */
uint64_t mtf_callback_next(mtf_callback_queue* queue, uint64_t nanoseconds);
/* Ends a job that `mtf_callback_next` has returned; code 0 is success. */
void mtf_callback_done(uint64_t job, int32_t code, const char* message);
/* Ends a job that was not called and will not be run. */
void mtf_callback_cancel(uint64_t job);
/* The interpreter ends: jobs that are called from now on fail as cancelled, and so do those that
 * wait for a worker. */
void mtf_callbacks_end(void);

#ifdef __cplusplus
}
#endif
