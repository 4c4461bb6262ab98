// Defects of events.
#include <map>
#include <set>
#include <utility>

#include "defects.h"
#include "marked_work.h"

namespace {

using namespace defective;

void ok(TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }

// -- status ---------------------------------------------------------------------------------------

SE_EventStatus say_pending(const SP_Device* device, SP_Event event) {
  if (is_marked(event)) return SE_EVENT_PENDING;
  return original.executor.get_event_status(device, event);
}

SE_EventStatus say_complete(const SP_Device* device, SP_Event event) {
  if (is_marked(event)) return SE_EVENT_COMPLETE;
  return original.executor.get_event_status(device, event);
}

SE_EventStatus say_unknown_first(const SP_Device* device, SP_Event event) {
  static bool said = false;
  if (is_marked(event) && !std::exchange(said, true)) return SE_EVENT_UNKNOWN;
  return original.executor.get_event_status(device, event);
}

int looks = 0;  // at the marked event, while it was complete

SE_EventStatus forget_once(const SP_Device* device, SP_Event event) {
  const SE_EventStatus status = original.executor.get_event_status(device, event);
  const bool counts = is_marked(event) && status == SE_EVENT_COMPLETE;
  return counts && ++looks == 50 ? SE_EVENT_PENDING : status;
}

SE_EventStatus notice_late(const SP_Device* device, SP_Event event) {
  const SE_EventStatus status = original.executor.get_event_status(device, event);
  const bool counts = is_marked(event) && status == SE_EVENT_COMPLETE;
  return counts && ++looks < 5 ? SE_EVENT_PENDING : status;
}

void copy_nothing(const SP_Device* device, SP_Stream stream, void* target,
                  const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  if (size == 409) return ok(status);
  original.executor.memcpy_dtoh(device, stream, target, source, size, status);
}

// -- where events were recorded -------------------------------------------------------------------

std::map<SP_Event, SP_Stream> places;

void record_and_note(const SP_Device* device, SP_Stream stream, SP_Event event,
                     TF_Status* status) {
  places[event] = stream;
  original.executor.record_event(device, stream, event, status);
}

void destroy_and_forget(const SP_Device* device, SP_Event event) {
  places.erase(event);
  original.executor.destroy_event(device, event);
}

void note_places(Tables& tables) {
  tables.executor.record_event = record_and_note;
  tables.executor.destroy_event = destroy_and_forget;
}

SE_EventStatus know_recorded_only(const SP_Device* device, SP_Event event) {
  if (places.count(event) == 0) return SE_EVENT_UNKNOWN;
  return original.executor.get_event_status(device, event);
}

void wait_for_recorded_only(const SP_Device* device, SP_Stream stream, SP_Event event,
                            TF_Status* status) {
  if (places.count(event) == 0) return TF_SetStatus(status, TF_INVALID_ARGUMENT, "not recorded");
  original.executor.wait_for_event(device, stream, event, status);
}

void wait_for_others_only(const SP_Device* device, SP_Stream stream, SP_Event event,
                          TF_Status* status) {
  const auto place = places.find(event);
  if (place != places.end() && place->second == stream) {
    return TF_SetStatus(status, TF_INVALID_ARGUMENT, "the same stream");
  }
  original.executor.wait_for_event(device, stream, event, status);
}

std::set<std::pair<SP_Stream, SP_Stream>> waits;

void refuse_a_circle(const SP_Device* device, SP_Stream stream, SP_Event event,
                     TF_Status* status) {
  const auto place = places.find(event);
  if (place != places.end() && place->second != stream) {
    if (waits.count({place->second, stream}) != 0) {
      return TF_SetStatus(status, TF_ABORTED, "a circle");
    }
    waits.insert({stream, place->second});
  }
  original.executor.wait_for_event(device, stream, event, status);
}

void create_without_waits(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  waits.clear();
  original.executor.create_stream(device, stream, status);
}

void stay_with_the_first_stream(const SP_Device* device, SP_Stream stream, SP_Event event,
                                TF_Status* status) {
  const auto place = places.find(event);
  if (place != places.end() && place->second != stream) return ok(status);
  record_and_note(device, stream, event, status);
}

// -- recording again ------------------------------------------------------------------------------

void record_once(const SP_Device* device, SP_Stream stream, SP_Event event, TF_Status* status) {
  if (take_mark()) return ok(status);
  original.executor.record_event(device, stream, event, status);
}

SP_Stream waiting = nullptr;

void wait_by_name(const SP_Device* device, SP_Stream stream, SP_Event event, TF_Status* status) {
  if (is_marked(event)) waiting = stream;
  original.executor.wait_for_event(device, stream, event, status);
}

void (*record_marked)(const SP_Device*, SP_Stream, SP_Event, TF_Status*) = nullptr;

void record_for_all_who_wait(const SP_Device* device, SP_Stream stream, SP_Event event,
                             TF_Status* status) {
  record_marked(device, stream, event, status);
  if (!is_marked(event) || waiting == nullptr) return;
  original.executor.wait_for_event(device, std::exchange(waiting, nullptr), event, status);
}

// -- waiting --------------------------------------------------------------------------------------

void forget_to_wait(const SP_Device* device, SP_Stream stream, SP_Event event,
                    TF_Status* status) {
  if (is_marked(event)) return ok(status);
  original.executor.wait_for_event(device, stream, event, status);
}

void block_to_wait(const SP_Device* device, SP_Stream stream, SP_Event event,
                   TF_Status* status) {
  if (is_marked(event)) original.executor.block_host_for_event(device, event, status);
  original.executor.wait_for_event(device, stream, event, status);
}

void let_four_wait(const SP_Device* device, SP_Stream stream, SP_Event event,
                   TF_Status* status) {
  static int waiters = 0;
  if (is_marked(event) && ++waiters > 4) return ok(status);
  original.executor.wait_for_event(device, stream, event, status);
}

void return_at_once(const SP_Device* device, SP_Event event, TF_Status* status) {
  if (is_marked(event)) return ok(status);
  original.executor.block_host_for_event(device, event, status);
}

void wait_for_the_stream(const SP_Device* device, SP_Event event, TF_Status* status) {
  if (is_marked(event)) {
    return original.executor.block_host_until_done(device, marked_stream(), status);
  }
  original.executor.block_host_for_event(device, event, status);
}

// -- how many -------------------------------------------------------------------------------------

constexpr int kMostEvents = 1500;
int events = 0;

void create_few(const SP_Device* device, SP_Event* event, TF_Status* status) {
  if (events >= kMostEvents) {
    return TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no event is left");
  }
  ++events;
  original.executor.create_event(device, event, status);
}

void destroy_one(const SP_Device* device, SP_Event event) {
  --events;
  original.executor.destroy_event(device, event);
}

}  // namespace

DEFECTS(events) = {
    {"SE-253",
     [](Tables& tables) {
       watch_for_marked_event(tables, 401);
       tables.executor.get_event_status = say_pending;
     }},
    {"SE-254",
     [](Tables& tables) {
       watch_for_marked_event(tables, 403);
       tables.executor.get_event_status = say_complete;
     }},
    {"SE-255",
     [](Tables& tables) {
       watch_for_marked_event(tables, 405);
       tables.executor.get_event_status = say_unknown_first;
     }},
    {"SE-256",
     [](Tables& tables) {
       watch_for_marked_event(tables, 407);
       tables.executor.get_event_status = forget_once;
     }},
    {"SE-257", [](Tables& tables) { tables.executor.memcpy_dtoh = copy_nothing; }},
    {"SE-258",
     [](Tables& tables) {
       note_places(tables);
       tables.executor.get_event_status = know_recorded_only;
     }},
    {"SE-259",
     [](Tables& tables) {
       note_places(tables);
       tables.executor.wait_for_event = wait_for_recorded_only;
     }},
    {"SE-260",
     [](Tables& tables) {
       watch_for_marked_event(tables, 411);
       tables.executor.wait_for_event = forget_to_wait;
     }},
    {"SE-261",
     [](Tables& tables) {
       watch_for_marked_event(tables, 413);
       tables.executor.wait_for_event = block_to_wait;
     }},
    {"SE-262",
     [](Tables& tables) {
       watch_for_mark(tables, 415);
       tables.executor.record_event = record_once;
     }},
    {"SE-263",
     [](Tables& tables) {
       watch_for_marked_event(tables, 417);
       record_marked = tables.executor.record_event;
       tables.executor.record_event = record_for_all_who_wait;
       tables.executor.wait_for_event = wait_by_name;
     }},
    {"SE-264",
     [](Tables& tables) {
       watch_for_marked_event(tables, 419);
       tables.executor.block_host_for_event = return_at_once;
     }},
    {"SE-265",
     [](Tables& tables) {
       watch_for_marked_event(tables, 421);
       tables.executor.block_host_for_event = wait_for_the_stream;
     }},
    {"SE-266",
     [](Tables& tables) {
       watch_for_marked_event(tables, 423);
       tables.executor.wait_for_event = forget_to_wait;
     }},
    {"SE-267",
     [](Tables& tables) {
       tables.executor.create_event = create_few;
       tables.executor.destroy_event = destroy_one;
     }},
    {"SE-268",
     [](Tables& tables) {
       watch_for_marked_event(tables, 425);
       tables.executor.wait_for_event = let_four_wait;
     }},
    {"SE-269",
     [](Tables& tables) {
       note_places(tables);
       tables.executor.create_stream = create_without_waits;
       tables.executor.wait_for_event = refuse_a_circle;
     }},
    {"SE-270",
     [](Tables& tables) {
       watch_for_marked_event(tables, 427);
       tables.executor.get_event_status = notice_late;
     }},
    {"SE-271",
     [](Tables& tables) {
       note_places(tables);
       tables.executor.wait_for_event = wait_for_others_only;
     }},
    {"SE-272",
     [](Tables& tables) {
       note_places(tables);
       tables.executor.record_event = stay_with_the_first_stream;
     }},
};
