/* One device of a plugin at work: SP_StreamExecutor's functions on one SP_Device.
 *
 * An executor holds a copy of the plugin's table. Streams, events, timers and memory are objects of
 * its; each is freed once by its owner, in any order, and freeing it calls the plugin's destroy or
 * deallocate function unless `mtf_executors_close` has called that before. The caller must not free
 * an object, or the executor, while another thread uses it in a call.
 *
 * All functions may run on any thread and in parallel; nothing is locked around a plugin's slot.
 * What a call is given may belong to another executor of the same plugin, which then stays open
 * until the call has returned.
 * Handles that a plugin gives are its own business: NULL is one. A slot that is NULL gives
 * UNIMPLEMENTED. After `mtf_executors_close`, and in a forked child, calls fail with `closed` set
 * and the plugin is not called.
 *
 * Functions that return `mtf_error*` return NULL on success. Those that return an object return
 * NULL on failure, and `mtf_take_error` on the same thread tells why. */
#pragma once

#include <stdint.h>

#include "arena.h"
#include "error.h"
#include "plugin_call.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mtf_executor mtf_executor;
typedef struct mtf_memory mtf_memory;
typedef struct mtf_stream mtf_stream;
typedef struct mtf_event mtf_event;
typedef struct mtf_timer mtf_timer;

/* -- the executor -- */

/* `table` is an SP_StreamExecutor of the newest layout, which is copied; `device` an SP_Device that
 * outlives the executor's last plugin call. `plugin`, which may be NULL, and `name`, of the device, are
 * for messages. `is_host` says that device memory is the host's, which others may look at: then it stays
 * until its owner frees it, as host and unified memory do. */
mtf_executor* mtf_executor_new(const void* table, const void* device, const mtf_plugin* plugin,
                               const char* name, int32_t is_host);
/* Gives the executor the slot `nanoseconds` of SP_TimerFns, or NULL. */
void mtf_executor_set_timer(mtf_executor* executor, void* nanoseconds);
/* The RFC's two kinds of allocator: memory that an arena of the host's cuts, or used as it is. */
enum { MTF_PLAIN_ALLOCATOR = 0, MTF_CUSTOM_ALLOCATOR = 1 };
/* Has memory come from SP_AllocatorFns or SP_CustomAllocatorFns `fns`, which are copied, instead of
 * the SP_StreamExecutor. `allocator` is the plugin's struct, which outlives all memory; `unified`
 * says whether the plain kind has unified memory. [before all other use] */
mtf_error* mtf_executor_set_allocator(mtf_executor* executor, int32_t kind, const void* fns,
                                      const void* allocator, int32_t unified);
/* Refuses further calls on all of them and waits for those that run; has the devices finish their
 * work if there are streams (synchronize_all_activity), and those of other executors whose work uses
 * objects of these; then destroys timers, events, streams and device memory of each, in that order.
 * Host and unified memory stays, since it may still be viewed. `errors` gets the failure of
 * each, or NULL; all are destroyed nevertheless. A further call returns when that has been done. */
void mtf_executors_close(mtf_executor* const* executors, mtf_error** errors, int32_t count);
/* Refuses further calls, as the first step of `mtf_executors_close`, which has to follow. */
void mtf_executor_refuse_calls(mtf_executor* executor);
/* 0 when it was closed, and in a forked child. */
int mtf_executor_is_open(const mtf_executor* executor);
/* 1 when `mtf_executors_close` has destroyed what it destroys: no work uses its memory any more. */
int mtf_executor_has_ended(const mtf_executor* executor);
/* 1 in a forked child: it belongs to the parent. */
int mtf_executor_is_inherited(const mtf_executor* executor);
/* 1 when closing `executor` waits for the work of `other`: a callback of that must not close it. */
int mtf_executor_waits_for(mtf_executor* executor, const mtf_executor* other);
/* How many host and unified memories there are: until they are freed the device must stay. One that
 * is being freed counts until the plugin's function has returned. */
int64_t mtf_executor_host_memories(mtf_executor* executor);
/* The number of objects in use: streams, events, timers, memory. */
int64_t mtf_executor_held_objects(mtf_executor* executor);
/* Gives the caller's reference back; objects keep the executor as long as they need it. */
void mtf_executor_free(mtf_executor* executor);
/* From now on objects that are freed are not destroyed, in any executor: the process ends. */
void mtf_executors_process_ends(void);
/* 1 when the two may use each other's streams, events and memory. */
int mtf_executors_share_plugin(const mtf_executor* executor, const mtf_executor* other);
mtf_error* mtf_synchronize_all_activity(mtf_executor* executor);

/* `known` is 0 when the plugin says that it cannot tell. */
mtf_error* mtf_get_allocator_stats(mtf_executor* executor, mtf_allocator_stats* stats,
                                   int32_t* known);
mtf_error* mtf_device_memory_usage(mtf_executor* executor, int64_t* free_bytes,
                                   int64_t* total_bytes, int32_t* known);

/* -- memory; RESOURCE_EXHAUSTED when the plugin gives none -- */

enum { MTF_DEVICE_MEMORY = 0, MTF_HOST_MEMORY = 1, MTF_UNIFIED_MEMORY = 2 };

/* Memory of a kind; 0 bytes are had without the plugin, at address 0. */
mtf_memory* mtf_memory_new(mtf_executor* executor, int32_t source, uint64_t size);
/* A piece of memory that its owner frees. */
mtf_memory* mtf_memory_borrow(mtf_executor* executor, void* address, uint64_t size,
                              uint64_t payload);
uintptr_t mtf_memory_address(const mtf_memory* memory);
uint64_t mtf_memory_payload(const mtf_memory* memory);
void mtf_memory_free(mtf_memory* memory);

/* The same for host and unified memory. Returns how many of them the executor has left, which may
 * be gone together with the last; -1 for NULL, and in a forked child, where nothing is freed. */
int64_t mtf_memory_free_of_host(mtf_memory* memory);

/* -- streams, events, timers -- */

mtf_stream* mtf_stream_new(mtf_executor* executor);
void mtf_stream_free(mtf_stream* stream);
mtf_error* mtf_stream_depend(mtf_stream* dependent, mtf_stream* other);
mtf_error* mtf_stream_status(mtf_stream* stream);
/* The plugin's SP_Stream, as an address; it is valid until the stream is freed, or its executor closed. */
uintptr_t mtf_stream_handle(const mtf_stream* stream);
/* By an event where the plugin has no block_host_until_done. */
mtf_error* mtf_stream_block_until_done(mtf_stream* stream);

mtf_event* mtf_event_new(mtf_executor* executor);
void mtf_event_free(mtf_event* event);
mtf_error* mtf_event_record(mtf_event* event, mtf_stream* stream);
/* A new event, recorded. */
mtf_event* mtf_stream_mark(mtf_stream* stream);
mtf_error* mtf_stream_wait_for_event(mtf_stream* stream, mtf_event* event);
mtf_error* mtf_event_block(mtf_event* event);
/* SE_EventStatus; 0 (unknown) for numbers that are none, -1 and `mtf_take_error` for a failure. */
int32_t mtf_event_status(mtf_event* event);
/* Polls until the event is no longer pending or the time is over; the status, as above. */
int32_t mtf_event_poll(mtf_event* event, uint64_t nanoseconds);
/* The same for what the stream holds now, by an event of the stream's own. */
int32_t mtf_stream_poll(mtf_stream* stream, uint64_t nanoseconds);

/* 1 when the plugin has all four slots and `nanoseconds`. */
int mtf_has_timers(const mtf_executor* executor);
mtf_timer* mtf_timer_new(mtf_executor* executor);
void mtf_timer_free(mtf_timer* timer);
mtf_error* mtf_timer_start(mtf_timer* timer, mtf_stream* stream);
mtf_error* mtf_timer_stop(mtf_timer* timer, mtf_stream* stream);
mtf_error* mtf_timer_nanoseconds(mtf_timer* timer, uint64_t* nanoseconds);

/* -- copies and fills; sizes and offsets in bytes, checked against the memory -- */

mtf_error* mtf_memcpy_htod(mtf_stream* stream, mtf_memory* target, uint64_t offset,
                           const void* source, uint64_t size);
mtf_error* mtf_memcpy_dtoh(mtf_stream* stream, void* target, mtf_memory* source, uint64_t offset,
                           uint64_t size);
mtf_error* mtf_memcpy_dtod(mtf_stream* stream, mtf_memory* target, uint64_t target_offset,
                           mtf_memory* source, uint64_t source_offset, uint64_t size);
/* Copies from memory of a device whose memory is the host's, by its address: the plugin is not called,
 * and streams are not waited for. */
mtf_error* mtf_read_host_memory(mtf_executor* executor, void* target, uintptr_t source, uint64_t size);
mtf_error* mtf_sync_memcpy_htod(mtf_executor* executor, mtf_memory* target, uint64_t offset,
                                const void* source, uint64_t size);
mtf_error* mtf_sync_memcpy_dtoh(mtf_executor* executor, void* target, mtf_memory* source,
                                uint64_t offset, uint64_t size);
mtf_error* mtf_sync_memcpy_dtod(mtf_executor* executor, mtf_memory* target, uint64_t target_offset,
                                mtf_memory* source, uint64_t source_offset, uint64_t size);
mtf_error* mtf_mem_zero(mtf_stream* stream, mtf_memory* target, uint64_t offset, uint64_t size);
mtf_error* mtf_memset(mtf_stream* stream, mtf_memory* target, uint64_t offset, uint8_t pattern,
                      uint64_t size);
mtf_error* mtf_memset32(mtf_stream* stream, mtf_memory* target, uint64_t offset, uint32_t pattern,
                        uint64_t size);

/* Whether the plugin has an optional function or one that older layouts lack. */
enum { MTF_MEMCPY_DTOD = 0, MTF_SYNC_MEMCPY_DTOD = 1, MTF_MEM_ZERO = 2, MTF_MEMSET = 3,
       MTF_MEMSET32 = 4 };
int mtf_has_operation(const mtf_executor* executor, int32_t operation);

/* Arenas over the memory of an executor, device's or host's. */

/* An arena over a kind of memory, MTF_DEVICE_MEMORY or MTF_HOST_MEMORY; it keeps the executor. A
 * `bytes_limit` of UINT64_MAX stands for none; the others are as in mtf_arena_options. NULL and a kept
 * error on failure, as the functions of executor.h. What the executor reports other than exhaustion
 * becomes the error of the allocation that asked. What overlaps a region that is in use breaks SE-135,
 * and is not given back. */
mtf_arena* mtf_executor_arena_new(mtf_executor* executor, int32_t source, uint64_t bytes_limit,
                                  int32_t growth, int32_t garbage_collection);

/* Memory of a kind out of an arena over that kind of memory of `executor`; it keeps the arena, and
 * returns there when it is freed or the executor is closed. 0 bytes need no arena. NULL and a kept
 * error on failure, as the functions of executor.h. */
mtf_memory* mtf_arena_memory_new(mtf_executor* executor, mtf_arena* arena, int32_t source,
                                 uint64_t size);

/* Host callbacks that run Python, on threads that Python has made.
 *
 * A plugin's thread never enters Python: the function that the plugin calls puts a job into its
 * stream's queue, where a worker thread of Python's waits, and sleeps until the worker has said how
 * it went. So neither the GIL nor the end of the interpreter can stop a plugin's thread for ever,
 * and no exception leaves through the plugin. Plugins are given a number, not a pointer: one that
 * calls twice, or late, or although it said that it would not, does no harm.
 *
 * All functions may run on any thread. */

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
