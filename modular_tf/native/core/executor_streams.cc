// Streams, events and timers.
#include "executor.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <memory>
#include <new>
#include <thread>
#include <unordered_map>

#include "copied_text.h"
#include "executor_state.h"

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
  mark->is_internal = true;
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

namespace {

struct Queue {
  std::deque<uint64_t> called;
  mtf::Signal filled;
};

struct Job {
  std::shared_ptr<Queue> queue;
  bool is_called = false;
  bool is_over = false;
  int code = 0;
  std::unique_ptr<char, void (*)(void*)> message{nullptr, std::free};
  mtf::Signal over;
};

// All jobs of the process; one lock, since callbacks are few and long.
struct Jobs {
  mtf::Lock lock;
  std::unordered_map<uint64_t, std::shared_ptr<Job>> by_number;
  uint64_t last = 0;
  bool ended = false;
};

Jobs* const jobs = new Jobs;  // never destroyed: plugins' threads may outlive our destructors

// A forked child has none of the parent's jobs, and maybe half of a change to them.
const int watching_forks = pthread_atfork(nullptr, nullptr, [] { new (jobs) Jobs; });

// The job that this thread is handing to a plugin, and whether the plugin has called it meanwhile.
thread_local uint64_t handing_over = 0;
thread_local bool called_at_once = false;

void set_status(TF_Status* status, int code, const char* message) {
  if (status != nullptr) mtf_status_set(status, code, message);
}

std::shared_ptr<Job> find(uint64_t number) {
  const auto found = jobs->by_number.find(number);
  return found == jobs->by_number.end() ? nullptr : found->second;
}

void finish(uint64_t number, Job& job, int code, const char* message) {
  job.is_over = true;
  job.code = code;
  if (code != 0) job.message.reset(mtf_copied_text(message));  // NULL where memory has run out
  job.over.notify_all();
  jobs->by_number.erase(number);
}

void hand_to_worker(uint64_t number, Job& job) {
  mtf::Error error = mtf::without_exceptions([&] { job.queue->called.push_back(number); });
  if (error) finish(number, job, error.code(), error.message());
  job.queue->filled.notify_one();
}

// What plugins are given to call.
void run_job(uint64_t number, TF_Status* status) {
  if (number == handing_over) {
    called_at_once = true;
    return set_status(status, TF_OK, "");
  }
  mtf::UniqueLock lock(jobs->lock);
  const std::shared_ptr<Job> job = find(number);
  if (job == nullptr || job->is_called) {
    lock.unlock();
    return set_status(status, TF_CANCELLED, "the callback is over, or was called before");
  }
  job->is_called = true;
  if (jobs->ended) finish(number, *job, TF_CANCELLED, "the interpreter has ended");
  if (!job->is_over) hand_to_worker(number, *job);
  job->over.wait(lock, [&] { return job->is_over; });
  lock.unlock();
  set_status(status, job->code, job->message.get());
}

void called_by_plugin(void* const argument, TF_Status* const status) {
  mtf::Error error = mtf::without_exceptions(
      [&] { run_job(reinterpret_cast<uintptr_t>(argument), status); });
  if (error) set_status(status, error.code(), error.message());
}

}  // namespace

struct mtf_callback_queue {
  std::shared_ptr<Queue> queue = std::make_shared<Queue>();
};

extern "C" {

mtf_callback_queue* mtf_callback_queue_new(void) {
  return watching_forks == 0 ? new mtf_callback_queue : nullptr;
}

void mtf_callback_queue_free(mtf_callback_queue* queue) { delete queue; }

uint64_t mtf_callback_new(mtf_callback_queue* queue) {
  const mtf::LockGuard lock(jobs->lock);
  auto job = std::make_shared<Job>();
  job->queue = queue->queue;
  jobs->by_number.emplace(++jobs->last, std::move(job));
  return jobs->last;
}

mtf_error* mtf_callback_enqueue(mtf_stream* stream, uint64_t job, int32_t* outcome) {
  const uint64_t outer = handing_over;
  handing_over = job;
  called_at_once = false;
  mtf_executor* executor = stream->owner;
  TF_Bool accepted = 0;
  mtf_error* error = mtf::on_slot(
      executor, executor->table.host_callback, "host_callback", [&](auto* enqueue, TF_Status*) {
        accepted = enqueue(executor->device, stream->handle, called_by_plugin,
                           reinterpret_cast<void*>(static_cast<uintptr_t>(job)));
      });
  *outcome = called_at_once  ? MTF_CALLBACK_RUN_NOW
             : accepted == 0 ? MTF_CALLBACK_REFUSED
                             : MTF_CALLBACK_ENQUEUED;
  handing_over = outer;
  called_at_once = false;
  if (error != nullptr || *outcome != MTF_CALLBACK_ENQUEUED) mtf_callback_cancel(job);
  return error;
}

uint64_t mtf_callback_next(mtf_callback_queue* queue, uint64_t nanoseconds) {
  mtf::UniqueLock lock(jobs->lock);
  Queue& its = *queue->queue;
  its.filled.wait_for(lock, std::chrono::nanoseconds(nanoseconds),
                      [&] { return jobs->ended || !its.called.empty(); });
  if (its.called.empty()) return 0;
  const uint64_t number = its.called.front();
  its.called.pop_front();
  return number;
}

void mtf_callback_done(uint64_t number, int32_t code, const char* message) {
  const mtf::LockGuard lock(jobs->lock);
  const std::shared_ptr<Job> job = find(number);
  if (job != nullptr) finish(number, *job, code, message);
}

void mtf_callback_cancel(uint64_t number) {
  mtf_callback_done(number, TF_CANCELLED, "the callback was cancelled");
}

void mtf_callbacks_end(void) {
  const mtf::LockGuard lock(jobs->lock);
  jobs->ended = true;
  while (!jobs->by_number.empty()) {
    const auto [number, job] = *jobs->by_number.begin();
    job->queue->filled.notify_all();
    finish(number, *job, TF_CANCELLED, "the interpreter has ended");
  }
}

}  // extern "C"
