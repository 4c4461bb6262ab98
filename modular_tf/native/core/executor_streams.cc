// Streams, events and timers.
#include <algorithm>
#include <chrono>
#include <thread>

#include "executor_call.h"

using mtf::call_slot;
using mtf::guarded;
using mtf::make_object;
using mtf::on_slot;

namespace {

constexpr int32_t kFailed = -1;

// Polling starts at the pace of TensorFlow's event manager, and slows down while nothing changes, so
// that what is lost by sleeping too long stays a small part of the whole wait.
constexpr std::chrono::nanoseconds kFirstPause(10'000);
constexpr std::chrono::nanoseconds kLongestPause(500'000);
constexpr int kPausesInWait = 32;

// A wait for a short copy shall not last as long as the shortest sleep of the system.
constexpr std::chrono::nanoseconds kSpin(50'000);

template <class Handle, class Destroy>
void destroy_handle(mtf_executor* executor, Handle handle, Destroy destroy, const char* name) {
  if (destroy == nullptr) return;
  mtf::drop(guarded({executor->plugin, name, executor->name},
                    [&](TF_Status*) { destroy(executor->device, handle); }));
}

// Calls a slot about a stream and a further object, which may be another executor's.
template <class Slot, class Object>
mtf_error* call_on_stream(mtf_stream* stream, Slot slot, const char* name, Object* object) {
  const mtf::Operand operand(stream->owner, object);
  if (mtf::Error error = operand.refusal()) return error.release();
  return call_slot(stream->owner, slot, name, stream->handle, object->handle);
}

// Looks again and again, without sleeping for as long as `spin`.
int32_t poll(mtf_event* event, uint64_t nanoseconds, std::chrono::nanoseconds spin) {
  using Clock = std::chrono::steady_clock;
  int32_t status = mtf_event_status(event);
  if (status != SE_EVENT_PENDING) return status;
  const auto start = Clock::now();
  const auto end = start + std::chrono::nanoseconds(nanoseconds);
  auto pause = kFirstPause;
  for (;;) {
    const auto now = Clock::now();
    if (now >= end) return status;
    if (now - start < spin) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(pause);
      pause = std::min(pause + pause / kPausesInWait, kLongestPause);
    }
    status = mtf_event_status(event);
    if (status != SE_EVENT_PENDING) return status;
  }
}

// What stands in for block_host_until_done where the plugin has none.
mtf_error* block_by_event(mtf_stream* stream) {
  mtf_event* event = mtf_stream_mark(stream);
  if (event == nullptr) return mtf_take_error();
  mtf_error* error = mtf_event_block(event);
  mtf_event_free(event);
  return error;
}

}  // namespace

void mtf_stream::destroy() {
  destroy_handle(owner, handle, owner->table.destroy_stream, "destroy_stream");
}
void mtf_event::destroy() {
  destroy_handle(owner, handle, owner->table.destroy_event, "destroy_event");
}
void mtf_timer::destroy() {
  destroy_handle(owner, handle, owner->table.destroy_timer, "destroy_timer");
}

extern "C" {

mtf_stream* mtf_stream_new(mtf_executor* executor) {
  return make_object<mtf_stream>(executor, [&](mtf_stream* stream) {
    return call_slot(executor, executor->table.create_stream, "create_stream", &stream->handle);
  });
}

void mtf_stream_free(mtf_stream* stream) {
  if (stream == nullptr) return;
  mtf_event_free(stream->mark.exchange(nullptr));
  stream->owner->end(stream);
}

mtf_error* mtf_stream_depend(mtf_stream* dependent, mtf_stream* other) {
  return call_on_stream(dependent, dependent->owner->table.create_stream_dependency,
                        "create_stream_dependency", other);
}

uintptr_t mtf_stream_handle(const mtf_stream* stream) {
  return reinterpret_cast<uintptr_t>(stream->handle);
}

mtf_error* mtf_stream_status(mtf_stream* stream) {
  return call_slot(stream->owner, stream->owner->table.get_stream_status, "get_stream_status",
                   stream->handle);
}

mtf_error* mtf_stream_block_until_done(mtf_stream* stream) {
  const auto block = stream->owner->table.block_host_until_done;
  if (block == nullptr) return block_by_event(stream);
  return call_slot(stream->owner, block, "block_host_until_done", stream->handle);
}

mtf_event* mtf_event_new(mtf_executor* executor) {
  return make_object<mtf_event>(executor, [&](mtf_event* event) {
    return call_slot(executor, executor->table.create_event, "create_event", &event->handle);
  });
}

void mtf_event_free(mtf_event* event) {
  if (event != nullptr) event->owner->end(event);
}

mtf_error* mtf_event_record(mtf_event* event, mtf_stream* stream) {
  return call_on_stream(stream, stream->owner->table.record_event, "record_event", event);
}

mtf_event* mtf_stream_mark(mtf_stream* stream) {
  mtf_event* event = mtf_event_new(stream->owner);
  if (event == nullptr) return nullptr;
  mtf_error* error = mtf_event_record(event, stream);
  if (error == nullptr) return event;
  mtf_event_free(event);
  return mtf::fail_with(error);
}

mtf_error* mtf_stream_wait_for_event(mtf_stream* stream, mtf_event* event) {
  return call_on_stream(stream, stream->owner->table.wait_for_event, "wait_for_event", event);
}

mtf_error* mtf_event_block(mtf_event* event) {
  return call_slot(event->owner, event->owner->table.block_host_for_event, "block_host_for_event",
                   event->handle);
}

int32_t mtf_event_status(mtf_event* event) {
  int32_t status = SE_EVENT_UNKNOWN;
  mtf_executor* executor = event->owner;
  mtf::Error error = on_slot(
      executor, executor->table.get_event_status, "get_event_status",
      [&](auto* get, TF_Status*) { status = get(executor->device, event->handle); });
  if (error) {
    mtf::fail_with(error.release());
    return kFailed;
  }
  return status < SE_EVENT_UNKNOWN || status > SE_EVENT_COMPLETE ? SE_EVENT_UNKNOWN : status;
}

int32_t mtf_event_poll(mtf_event* event, uint64_t nanoseconds) {
  return poll(event, nanoseconds, std::chrono::nanoseconds(0));
}

int32_t mtf_stream_poll(mtf_stream* stream, uint64_t nanoseconds) {
  mtf_event* mark = stream->mark.exchange(nullptr);
  if (mark == nullptr) mark = mtf_event_new(stream->owner);
  if (mark == nullptr) return kFailed;
  mark->is_hosts = true;
  mtf_error* error = mtf_event_record(mark, stream);
  if (error != nullptr) mtf::fail_with(error);
  const int32_t status = error != nullptr ? kFailed : poll(mark, nanoseconds, kSpin);
  mtf_event_free(stream->mark.exchange(mark));
  return status;
}

int mtf_has_timers(const mtf_executor* executor) {
  const SP_StreamExecutor& table = executor->table;
  return table.create_timer != nullptr && table.destroy_timer != nullptr &&
         table.start_timer != nullptr && table.stop_timer != nullptr &&
         executor->nanoseconds.load() != nullptr;
}

mtf_timer* mtf_timer_new(mtf_executor* executor) {
  return make_object<mtf_timer>(executor, [&](mtf_timer* timer) {
    return call_slot(executor, executor->table.create_timer, "create_timer", &timer->handle);
  });
}

void mtf_timer_free(mtf_timer* timer) {
  if (timer != nullptr) timer->owner->end(timer);
}

mtf_error* mtf_timer_start(mtf_timer* timer, mtf_stream* stream) {
  return call_on_stream(stream, stream->owner->table.start_timer, "start_timer", timer);
}

mtf_error* mtf_timer_stop(mtf_timer* timer, mtf_stream* stream) {
  return call_on_stream(stream, stream->owner->table.stop_timer, "stop_timer", timer);
}

mtf_error* mtf_timer_nanoseconds(mtf_timer* timer, uint64_t* nanoseconds) {
  *nanoseconds = 0;
  return on_slot(timer->owner, timer->owner->nanoseconds.load(), "nanoseconds",
                 [&](auto* ask, TF_Status*) { *nanoseconds = ask(timer->handle); });
}

}  // extern "C"
