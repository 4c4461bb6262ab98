// How a call gets a channel to the process of a worker, and gives it back.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

#include "worker_call.h"
#include "worker_upcalls.h"

namespace mtf {
namespace {

bool is_main_thread() { return syscall(SYS_gettid) == getpid(); }

}  // namespace

bool is_interrupted() { return is_main_thread() && mtf_upcall_worker_signals() != 0; }

bool WorkerCall::acquire() {
  bool is_second = false;
  UniqueLock lock(worker_->lock);
  for (;;) {
    forget_parents(*worker_);
    if (worker_->is_closed) return failed(TF_FAILED_PRECONDITION, kClosedInWorker,
                                          "the filesystem is closed");
    if (wanted_run_ != 0 && (worker_->control < 0 || wanted_run_ != worker_->run)) {
      return failed(TF_UNAVAILABLE, kFileLost,
                    "the process of the plugin that had this file open has ended; open it again");
    }
    if (worker_->control < 0) {
      if (!start(lock)) return false;
      continue;
    }
    if (Channel* channel = worker_->idle) {
      worker_->idle = channel->next;
      channel_ = channel;
      break;
    }
    if (worker_->channels < worker_->most_channels) {
      channel_ = new_channel();
      if (channel_ != nullptr) {
        ++worker_->channels;
        channel_->run = worker_->run;
        break;
      }
      const int number = errno;
      if (number == EPIPE || number == ECONNRESET) {  // it has ended, and nothing has begun in it
        lock.unlock();
        lost(false);
        if (wanted_run_ != 0) status_->mark = kFileLost;
        if (wanted_run_ != 0 || is_second || is_interrupted()) return false;
        is_second = true;
        mtf_status_clear(status_);
        lock.lock();
        continue;
      }
      return failed(TF_RESOURCE_EXHAUSTED, 0, "no channel to the process of the plugin: %s",
                    std::strerror(number));
    }
    if (may_try_more_channels(*worker_)) continue;
    if (of_this_thread(worker_) >= worker_->channels) {
      return failed(TF_FAILED_PRECONDITION, 0,
                    "a signal handler has interrupted the only call that the process of the plugin has room "
                    "for; call it when the handler has returned");
    }
    ++worker_->waiting;
    const bool is_free = worker_->changed.wait_for(
        lock, std::chrono::milliseconds(kLookForSignalsMs),
        [&] { return worker_->idle != nullptr || worker_->channels < worker_->most_channels; });
    --worker_->waiting;
    if (!is_free) {
      lock.unlock();
      if (is_interrupted()) return failed(TF_CANCELLED, kInterrupted, "interrupted");
      lock.lock();
    }
  }
  ++worker_->in_flight;
  worker_->calls.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// Called with the lock, under which nothing waits: sending a message to a socket with room does not.
Channel* WorkerCall::new_channel() {
  std::unique_ptr<Channel> made(new (std::nothrow) Channel);
  if (made == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  made->forks = fork_generation();
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return nullptr;
  made->socket = ends[0];
  const timeval most = {0, kLookForSignalsMs * 1000};
  setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  char byte = 'c';
  const ssize_t sent = send_message(worker_->control, {&byte, 1}, &ends[1], 1, MSG_DONTWAIT);
  const int number = errno;
  close_file(ends[1]);
  errno = number;
  return sent == 1 ? made.release() : nullptr;
}

// Starts a process; one thread does, the others wait for it. Called with the lock.
bool WorkerCall::start(UniqueLock& lock) {
  if (worker_->is_starting) {
    if (is_started_by_this_thread()) {
      return failed(TF_FAILED_PRECONDITION, 0,
                    "a signal handler has interrupted this thread while it starts the process of the "
                    "plugin; call it when the handler has returned");
    }
    const bool is_over =
        worker_->changed.wait_for(lock, std::chrono::milliseconds(kLookForSignalsMs),
                                  [&] { return !worker_->is_starting; });
    if (is_over) return true;  // the caller looks again
    lock.unlock();
    if (is_interrupted()) return failed(TF_CANCELLED, kInterrupted, "interrupted");
    lock.lock();
    return true;
  }
  worker_->is_starting = is_starting_ = true;
  const int64_t run = worker_->run + 1;
  lock.unlock();
  char text[kMostOfAText] = "";
  const int control = mtf_upcall_worker_start(worker_->number, run, text, sizeof text);
  lock.lock();
  worker_->is_starting = is_starting_ = false;
  worker_->run = run;
  worker_->control = control;
  worker_->given_up = 0;
  worker_->changed.notify_all();
  if (control >= 0) return true;
  text[sizeof text - 1] = '\0';
  return failed(TF_UNAVAILABLE, kWorkerEnded, "%s", text);
}

// Then this is a call of a signal handler's, which runs in the middle of the start.
bool WorkerCall::is_started_by_this_thread() const {
  const WorkerCall* call = outer_;
  while (call != nullptr && (call->worker_ != worker_ || !call->is_starting_)) call = call->outer_;
  return call != nullptr;
}

bool WorkerCall::acquire_again() {
  lost(false);
  if (is_interrupted()) return false;
  mtf_status_clear(status_);
  give_back();
  return acquire() && room(room_);
}

// A process that has refused a channel goes on with those that it has: the call waits for one of them, or
// until others may be tried for.
bool WorkerCall::acquire_other() {
  give_up();
  give_back();
  {
    const LockGuard lock(worker_->lock);
    worker_->most_channels = worker_->channels > 1 ? worker_->channels : 1;
    worker_->more_channels = 1;
    worker_->tries_more_at = std::chrono::steady_clock::now() + kBetweenTries;
  }
  return acquire() && room(room_);
}

void WorkerCall::give_back() {
  if (channel_ == nullptr) return;
  UniqueLock lock(worker_->lock);
  forget_parents(*worker_);
  if (channel_->is_large() && worker_->idle != nullptr) {  // one idle channel may stay large
    lock.unlock();
    channel_->shrink();
    lock.lock();
  }
  const bool is_of_now =
      channel_->run == worker_->run && worker_->control >= 0 && !worker_->is_closed;
  if (is_of_now) {
    channel_->next = worker_->idle;
    worker_->idle = channel_;
  } else if (worker_->channels > 0) {
    --worker_->channels;
  }
  if (worker_->in_flight > 0) --worker_->in_flight;
  const bool is_awaited = worker_->waiting > 0;
  lock.unlock();
  if (is_awaited) worker_->changed.notify_all();  // which is a call of the system
  if (!is_of_now) delete channel_;
  channel_ = nullptr;
}

}  // namespace mtf
