/* The worker process of a plugin, as the host sees it: a way for calls, and tables of functions that
 * make them there. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "filesystem.h"
#include "plugin_call.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mtf_worker mtf_worker;

/* What `modular-tf workers` shows of one. */
typedef struct mtf_worker_state {
  int64_t run;       /* how many processes it has had; 0: none yet */
  int64_t running;   /* 1: there is a process now */
  int64_t calls;     /* made since the beginning */
  int64_t in_flight; /* under way now */
  int64_t channels;  /* open now */
  int64_t given_up;  /* calls that were interrupted and may still run in the process of now */
} mtf_worker_state;

/* `number` is what the upcalls of worker_upcalls.h are given. A call may take `timeout_ms`; 0: as long
 * as it takes. NULL and a kept error where there is no memory. [any thread] */
mtf_worker* mtf_worker_new(int64_t number, const mtf_plugin* plugin, int64_t timeout_ms);
/* Drops the caller's reference; filesystems and files keep their own. */
void mtf_worker_release(mtf_worker* worker);
/* Refuses calls from now on, and waits until those that are under way have ended, or the time is up. */
void mtf_worker_stop(mtf_worker* worker, int64_t most_ms);
/* Lets the process go, which ends when the plugin has cleaned up; the next call starts another. Returns 1,
 * or 0 and does nothing where a call is under way, or came after `calls` of them (mtf_worker_state), or a
 * process is being started. */
int mtf_worker_rest(mtf_worker* worker, int64_t calls);
/* Ends the connection for good; further calls give FAILED_PRECONDITION. Safe to call twice. */
void mtf_worker_close(mtf_worker* worker);
void mtf_worker_get_state(mtf_worker* worker, mtf_worker_state* state);

/* Fills a block as mtf_filesystem_new takes it, of mtf_worker_tables_size bytes: functions that call the
 * worker for those slots that `slots` has, the block of the plugin's own tables in the worker. Its
 * addresses are never called; a NULL stays NULL. */
void mtf_worker_tables(const void* slots, void* tables);
/* The size of such a block. */
size_t mtf_worker_tables_size(void);

/* A filesystem of the worker's, the `index`th. `tables` came from mtf_worker_tables. With `stats_on_open` its
 * files are looked up when they are opened for reading, so that they can be opened again in another
 * process; without, only those can that were looked up before. */
mtf_error* mtf_filesystem_new_in_worker(const void* tables, const mtf_plugin* plugin,
                                        mtf_worker* worker, uint32_t index, int stats_on_open,
                                        mtf_filesystem** filesystem);

/* In the worker: answers the calls of the host until it closes the socket `control`. The filesystems
 * stay the caller's. */
mtf_error* mtf_worker_serve(int control, mtf_filesystem** filesystems, uint32_t count);

#ifdef __cplusplus
}
#endif
