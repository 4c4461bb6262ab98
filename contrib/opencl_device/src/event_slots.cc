#include "event.h"
#include "reported.h"
#include "slots.h"
#include "stream.h"

namespace opencl {
namespace {

void create_event(const SP_Device*, SP_Event* event, TF_Status* status) {
  reported(status, [&] { *event = new SP_Event_st(); });
}

void destroy_event(const SP_Device*, SP_Event event) { delete event; }

// An event that was never recorded has nothing outstanding.
SE_EventStatus get_event_status(const SP_Device*, SP_Event event) {
  try {
    const cl_int status = event->event.mark().status();
    if (status < 0) return SE_EVENT_ERROR;
    return status == CL_COMPLETE ? SE_EVENT_COMPLETE : SE_EVENT_PENDING;
  } catch (const std::exception&) {
    return SE_EVENT_UNKNOWN;
  }
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
    const Mark mark = event->event.mark();
    mark.wait();
    check(mark.status(), "the work before the event");
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

}  // namespace opencl
