#include "worker_channels.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

#include "worker_call.h"

namespace mtf {
namespace {

constexpr size_t kSmallestArea = size_t{1} << 20;

void drop_channels(mtf_worker& worker) {
  while (Channel* channel = worker.idle) {
    worker.idle = channel->next;
    delete channel;
  }
}

}  // namespace

void disconnect(mtf_worker& worker) {
  for (Channel* channel = worker.idle; channel != nullptr; channel = channel->next) --worker.channels;
  drop_channels(worker);
  close_file(worker.control);
  worker.most_channels = kMostChannels;
}

bool may_try_more_channels(mtf_worker& worker) {
  const auto now = std::chrono::steady_clock::now();
  if (worker.most_channels == kMostChannels || now < worker.tries_more_at) return false;
  worker.most_channels = std::min(worker.channels + worker.more_channels, kMostChannels);
  worker.more_channels *= 2;
  worker.tries_more_at = now + kBetweenTries;
  return true;
}

void forget_parents(mtf_worker& worker) {
  if (worker.forks == fork_generation()) return;
  worker.forks = fork_generation();
  disconnect(worker);
  worker.channels = worker.in_flight = worker.waiting = 0;
  worker.is_starting = false;
}

// A child of a fork may have the socket too, so that it does not end when it is closed here. Where it were closed
// with a message that was not read, the worker would get ECONNRESET before the request that is on its way.
Channel::~Channel() {
  if (socket >= 0 && forks == fork_generation()) {
    wire::Request forget = {};
    forget.operation = wire::kForget;
    if (is_asked) send_message(socket, {&forget, sizeof forget}, nullptr, 0, MSG_DONTWAIT);
    shutdown(socket, SHUT_RDWR);  // no further message comes
    char byte;
    while (recv(socket, &byte, sizeof byte, MSG_DONTWAIT) > 0) {
    }
  }
  close_file(socket);
  drop_area();
}

void Channel::drop_area() {
  close_file(area_file);
  area.unmap();
}

// Another process can change the values of the bytes, and not their number.
bool Channel::reserve(size_t size) {
  if (size <= area.size() && area.take(Area::kHost)) return true;
  size_t larger = kSmallestArea;
  while (larger < size) larger *= 2;
  int file = memfd_create("modular_tf call", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file >= 0 && ftruncate(file, static_cast<off_t>(Area::kStart + larger)) == 0 &&
      fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0 && area.map(file)) {
    close_file(area_file);
    area_file = file;
    return area.take(Area::kHost);
  }
  close_file(file);
  return false;
}

void SeenFiles::keep(const char* path, const SeenFile& seen) try {
  for (Entry& entry : entries_) {
    if (entry.path == path) {
      entry.seen = seen;
      return;
    }
  }
  if (entries_.size() < kMost) {
    entries_.push_back({path, seen});
  } else {
    entries_[next_++ % kMost] = {path, seen};
  }
} catch (const std::bad_alloc&) {  // it is looked up again
}

bool SeenFiles::find(const char* path, SeenFile* seen) const {
  for (const Entry& entry : entries_) {
    if (entry.path == path) {
      *seen = entry.seen;
      return true;
    }
  }
  return false;
}

}  // namespace mtf

void mtf_worker::release() {
  if (references.fetch_sub(1) != 1) return;
  mtf_worker_close(this);
  delete this;
}

extern "C" mtf_worker* mtf_worker_new(int64_t number, const mtf_plugin* plugin, int64_t timeout_ms) {
  auto made = std::make_unique<mtf_worker>();
  made->number = number;
  made->plugin = plugin;
  made->timeout_ms = timeout_ms;
  made->forks = mtf::fork_generation();
  return made.release();
}

extern "C" void mtf_worker_release(mtf_worker* worker) {
  if (worker != nullptr) worker->release();
}

extern "C" void mtf_worker_stop(mtf_worker* worker, int64_t most_ms) {
  mtf::UniqueLock lock(worker->lock);
  worker->is_closed = true;
  mtf::forget_parents(*worker);
  worker->changed.notify_all();
  ++worker->waiting;
  const int own = mtf::WorkerCall::of_this_thread(worker);  // a signal handler closes it
  worker->changed.wait_for(lock, std::chrono::milliseconds(most_ms),
                           [&] { return worker->in_flight <= own; });
  --worker->waiting;
}

extern "C" int mtf_worker_rest(mtf_worker* worker, int64_t calls) {
  const mtf::LockGuard lock(worker->lock);
  mtf::forget_parents(*worker);
  if (worker->in_flight > 0 || worker->is_starting || worker->calls.load() != calls) return 0;
  mtf::disconnect(*worker);
  return 1;
}

extern "C" void mtf_worker_close(mtf_worker* worker) {
  const mtf::LockGuard lock(worker->lock);
  worker->is_closed = true;
  mtf::forget_parents(*worker);
  mtf::disconnect(*worker);
  worker->changed.notify_all();
}

extern "C" void mtf_worker_get_state(mtf_worker* worker, mtf_worker_state* state) {
  const mtf::LockGuard lock(worker->lock);
  mtf::forget_parents(*worker);
  *state = {worker->run, worker->control >= 0 ? 1 : 0, worker->calls.load(), worker->in_flight,
            worker->channels, worker->given_up};
}
