#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <time.h>

#include "good_device.h"
#include "ledger.h"

/* A stream does its work at once, so all that it keeps is whose it is. */
struct SP_Stream_st {
  const SP_Device* device;
};
struct SP_Event_st {
  int recorded;
};
struct SP_Timer_st {
  uint64_t started, stopped; /* ns */
};

static void* make(ledger_entry entry, size_t size) {
  void* made = calloc(1, size);
  if (made == NULL) abort();
  ledger_begin(entry);
  return made;
}

static void unmake(ledger_entry entry, void* made) {
  ledger_end(entry);
  free(made);
}

/* ---- Streams ---- */

static void create_stream(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  *stream = make(LEDGER_STREAMS, sizeof(**stream));
  (*stream)->device = device;
  succeed(status);
}

static void destroy_stream(const SP_Device* device, SP_Stream stream) {
  (void)device;
  unmake(LEDGER_STREAMS, stream);
}

static void create_stream_dependency(const SP_Device* device, SP_Stream dependent, SP_Stream other,
                                     TF_Status* status) {
  (void)device, (void)dependent, (void)other;
  succeed(status);
}

static void get_stream_status(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  (void)device, (void)stream;
  succeed(status);
}

/* ---- Events ---- */

static void create_event(const SP_Device* device, SP_Event* event, TF_Status* status) {
  (void)device;
  *event = make(LEDGER_EVENTS, sizeof(**event));
  succeed(status);
}

static void destroy_event(const SP_Device* device, SP_Event event) {
  (void)device;
  unmake(LEDGER_EVENTS, event);
}

static SE_EventStatus get_event_status(const SP_Device* device, SP_Event event) {
  (void)device;
  return event->recorded ? SE_EVENT_COMPLETE : SE_EVENT_PENDING;
}

static void record_event(const SP_Device* device, SP_Stream stream, SP_Event event,
                         TF_Status* status) {
  (void)device, (void)stream;
  event->recorded = 1;
  succeed(status);
}

static void wait_for_event(const SP_Device* const device, SP_Stream stream, SP_Event event,
                           TF_Status* const status) {
  (void)device, (void)stream, (void)event;
  succeed(status);
}

static void block_host_for_event(const SP_Device* device, SP_Event event, TF_Status* status) {
  (void)device;
  TF_SetStatus(status, event->recorded ? TF_OK : TF_FAILED_PRECONDITION, "never recorded");
}

/* ---- Timers ---- */

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void create_timer(const SP_Device* device, SP_Timer* timer, TF_Status* status) {
  (void)device;
  *timer = make(LEDGER_TIMERS, sizeof(**timer));
  succeed(status);
}

static void destroy_timer(const SP_Device* device, SP_Timer timer) {
  (void)device;
  unmake(LEDGER_TIMERS, timer);
}

static void start_timer(const SP_Device* device, SP_Stream stream, SP_Timer timer,
                        TF_Status* status) {
  (void)device, (void)stream;
  timer->started = now_ns();
  succeed(status);
}

static void stop_timer(const SP_Device* device, SP_Stream stream, SP_Timer timer,
                       TF_Status* status) {
  (void)device, (void)stream;
  timer->stopped = now_ns();
  succeed(status);
}

uint64_t timer_nanoseconds(SP_Timer timer) { return timer->stopped - timer->started; }

/* ---- Waiting: there is never anything to wait for ---- */

static void block_until_done(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  (void)device, (void)stream;
  succeed(status);
}

static void synchronize(const SP_Device* device, TF_Status* status) {
  (void)device;
  succeed(status);
}

static TF_Bool host_callback(const SP_Device* device, SP_Stream stream, SE_StatusCallbackFn function,
                             void* argument) {
  (void)device, (void)stream;
  TF_Status* status = TF_NewStatus();
  function(argument, status);
  TF_DeleteStatus(status);
  return 1;
}

void fill_stream_slots(SP_StreamExecutor* executor) {
  executor->create_stream = create_stream;
  executor->destroy_stream = destroy_stream;
  executor->create_stream_dependency = create_stream_dependency;
  executor->get_stream_status = get_stream_status;
  executor->create_event = create_event;
  executor->destroy_event = destroy_event;
  executor->get_event_status = get_event_status;
  executor->record_event = record_event;
  executor->wait_for_event = wait_for_event;
  executor->create_timer = create_timer;
  executor->destroy_timer = destroy_timer;
  executor->start_timer = start_timer;
  executor->stop_timer = stop_timer;
  executor->block_host_for_event = block_host_for_event;
  executor->block_host_until_done = block_until_done;
  executor->synchronize_all_activity = synchronize;
  executor->host_callback = host_callback;
}
