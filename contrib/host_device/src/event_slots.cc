#include "event.h"
#include "reported.h"
#include "slots.h"
#include "stream.h"

namespace host {
namespace {

void create_event(const SP_Device*, SP_Event* event, TF_Status* status) {
  reported(status, [&] { *event = new SP_Event_st(); });
}

void destroy_event(const SP_Device*, SP_Event event) { delete event; }

// An event that was never recorded has nothing outstanding.
SE_EventStatus get_event_status(const SP_Device*, SP_Event event) {
  const MarkPointer mark = event->event.mark();
  return mark == nullptr || mark->passed() ? SE_EVENT_COMPLETE : SE_EVENT_PENDING;
}

void record_event(const SP_Device*, SP_Stream stream, SP_Event event, TF_Status* status) {
  reported(status, [&] { event->event.set(stream->stream.mark()); });
}

void wait_for_event(const SP_Device* const, SP_Stream stream, SP_Event event,
                    TF_Status* const status) {
  reported(status, [&] { stream->stream.wait_for(event->event.mark()); });
}

void block_host_for_event(const SP_Device*, SP_Event event, TF_Status* status) {
  reported(status, [&] {
    const MarkPointer mark = event->event.mark();
    if (mark != nullptr) mark->wait();
  });
}

}  // namespace

void fill_event_slots(SP_StreamExecutor& executor) {
  executor.create_event = create_event;
  executor.destroy_event = destroy_event;
  executor.get_event_status = get_event_status;
  executor.record_event = record_event;
  executor.wait_for_event = wait_for_event;
  executor.block_host_for_event = block_host_for_event;
}

}  // namespace host
