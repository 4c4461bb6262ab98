#include "worker_channels.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

#include "shared_memory.h"
#include "worker_call.h"

namespace mtf {
namespace {

constexpr size_t kSmallArea = size_t{1} << 20;

size_t area_for(size_t size) {
  return size <= kSmallArea ? kSmallArea : (size + kHugePage - 1) / kHugePage * kHugePage;
}

void drop_channels(mtf_worker& worker) {
  while (Channel* channel = worker.idle) {
    worker.idle = channel->next;
    delete channel;
  }
}

}  // namespace

void close_file(int& file) {
  if (file >= 0) close(file);
  file = -1;
}

ssize_t send_with(int socket, iovec* parts, size_t count, const int* files, size_t file_count) {
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  if (file_count > 0) {
    const size_t size = file_count * sizeof(int);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(header), files, size);
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

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

Channel::~Channel() {
  if (line != nullptr) {
    if (forks == fork_generation()) hand_over(*line, is_asked ? kLeftUnread : kLeft);
    munmap(line, sizeof *line);
  }
  close_file(socket);
  drop_area();
}

void Channel::drop_area() {
  close_file(area_file);
  if (area != nullptr) munmap(area, area_size);
  area = nullptr;
  area_size = brought = 0;
}

bool Channel::reserve(size_t size) {
  const uint32_t use = uses_area ? static_cast<uint32_t>(kOfCall) : line->area.exchange(kOfCall);
  uses_area = true;
  if (use == kEmptying) drop_area();
  if (use == kEmpty) brought = 0;
  if (size <= area_size) return true;
  size = area_for(size);
  int file = -1;
  void* made = new_shared_memory(size, &file);
  if (made == nullptr) return false;
  drop_area();
  area = static_cast<char*>(made);
  area_size = size;
  area_file = file;
  return true;
}

bool Channel::bring_huge_page(size_t size) {
  if (size < brought + kHugePage / 2 || brought >= area_size || area_size < kHugePage) return false;
  brought = mtf::bring_huge_page(area + brought) ? brought + kHugePage : area_size;
  return true;
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

void Channel::release() {
  if (uses_area) line->area.store(kUnused, std::memory_order_release);
  uses_area = false;
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

extern "C" void mtf_worker_look(mtf_worker* worker, mtf_worker_state* state) {
  const mtf::LockGuard lock(worker->lock);
  mtf::forget_parents(*worker);
  *state = {worker->run, worker->control >= 0 ? 1 : 0, worker->calls.load(), worker->in_flight,
            worker->channels, worker->given_up};
}
