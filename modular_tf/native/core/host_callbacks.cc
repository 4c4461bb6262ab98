#include "host_callbacks.h"

#include <pthread.h>

#include <chrono>
#include <cstdlib>
#include <deque>
#include <memory>
#include <new>
#include <unordered_map>

#include "copied_text.h"
#include "executor_call.h"

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
