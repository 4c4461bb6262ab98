#include "worker_call.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "filesystem.h"
#include "worker_upcalls.h"

namespace mtf {
namespace {

constexpr int kTimeToEndMs = 200;
constexpr size_t kSmallestArea = size_t{1} << 20;
constexpr uint64_t kBlock = 512;  // of st_blocks

int64_t now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

// Whether a file can neither change nor be cut off, and has all its pages: those that are not there would
// be made when they are read, in memory of this process.
bool is_whole_and_sealed(int file, uint64_t size) {
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_WRITE;
  struct stat found;
  const int seals = fcntl(file, F_GET_SEALS);
  return seals >= 0 && (seals & kNeeded) == kNeeded && fstat(file, &found) == 0 &&
         static_cast<uint64_t>(found.st_size) >= size &&
         static_cast<uint64_t>(found.st_blocks) >= size / kBlock;
}

// Whether a socket ends within this time, which signals do not cut short.
bool ends_within(int socket, int most_ms) {
  pollfd polled = {socket, 0, 0};
  const int64_t end = now_ms() + most_ms;
  for (int64_t left = most_ms; left >= 0; left = end - now_ms()) {
    const int found = poll(&polled, 1, static_cast<int>(left));
    if (found >= 0 || errno != EINTR) return found != 0;
  }
  return false;
}

// Forgets the connection of a process that is gone. Called with the lock, as is the next one.
void disconnect(mtf_worker& worker) {
  while (Channel* channel = worker.idle) {
    worker.idle = channel->next;
    --worker.channels;
    delete channel;
  }
  close_file(worker.control);
  worker.most_channels = kMostChannels;
}

// After a channel was refused: lets calls try for more from time to time, each time for twice as many as
// the time before. Whether one may now.
bool may_try_more_channels(mtf_worker& worker) {
  const auto now = std::chrono::steady_clock::now();
  if (worker.most_channels == kMostChannels || now < worker.tries_more_at) return false;
  worker.most_channels = std::min(worker.channels + worker.more_channels, kMostChannels);
  worker.more_channels *= 2;
  worker.tries_more_at = now + kBetweenTries;
  return true;
}

// In a forked child: forgets the connection of its parent.
void forget_parents(mtf_worker& worker) {
  if (worker.forks == fork_generation()) return;
  worker.forks = fork_generation();
  disconnect(worker);
  worker.channels = worker.in_flight = worker.waiting = 0;
  worker.is_starting = false;
  if (worker.lock.is_abandoned()) new (&worker.seen) SeenFiles;  // another thread may have been changing them
}

// Of a socket whose other end is closed: whether a request lay there unread. The kernel sets the end and then the
// error for that, under a lock: a receiver may see the end alone, and the second of these sees both.
bool was_unread(int socket) {
  char byte;
  for (int i = 0; i < 2; ++i) {
    if (recv(socket, &byte, sizeof byte, MSG_DONTWAIT) < 0 && errno == ECONNRESET) return true;
  }
  return false;
}

}  // namespace

// -- channels ---------------------------------------------------------------------------------------------

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

// -- calls ------------------------------------------------------------------------------------------------

bool is_interrupted() {
  const bool is_main_thread = syscall(SYS_gettid) == getpid();
  return is_main_thread && mtf_upcall_worker_signals() != 0;
}

WorkerCall::WorkerCall(mtf_worker* worker, TF_Status* status, int64_t run)
    : outer_(innermost_), worker_(worker), status_(status), wanted_run_(run) {
  innermost_ = this;
  acquire();
}

WorkerCall::~WorkerCall() {
  close_file(file_);
  close_file(directory_);
  give_back();
  innermost_ = outer_;
}

int WorkerCall::of_this_thread(const mtf_worker* worker) {
  int count = 0;
  for (const WorkerCall* call = innermost_; call != nullptr; call = call->outer_) {
    if (call->worker_ == worker && call->channel_ != nullptr) ++count;
  }
  return count;
}

bool WorkerCall::failed(int code, int32_t mark, const char* format, ...) {
  char message[kMostOfAText + 256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  mtf_status_set(status_, code, message);
  status_->mark = mark;
  if (mark == kInvalidReply) give_up();
  return false;
}

bool WorkerCall::reject_reply(const char* what) {
  return failed(TF_INTERNAL, kInvalidReply, "the process of the plugin sent %s", what);
}

bool WorkerCall::texts(const char* first, const char* second) {
  data_ = first;
  first_size_ = std::strlen(first) + 1;
  second_ = second;
  size_ = first_size_ + (second != nullptr ? std::strlen(second) + 1 : 0);
  return room(size_) && add_directory(first) && (second == nullptr || add_directory(second));
}

// A path may begin in the current directory of this process, which is not the worker's.
bool WorkerCall::add_directory(const char* path) {
  size_t scheme = 0;
  if (*path == '/' || directory_ >= 0) return true;
  mtf_uri_path_offset(path, &scheme);
  if (scheme > 0) return true;
  directory_ = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  return directory_ >= 0 || failed(TF_FAILED_PRECONDITION, 0,
                                   "the current directory cannot be opened: %s",
                                   std::strerror(errno));
}

bool WorkerCall::bytes(const char* data, size_t size) {
  data_ = data;
  first_size_ = size_ = size;
  return room(size);
}

bool WorkerCall::room(size_t size) {
  room_ = size;
  if (size <= wire::kInline || channel_->reserve(size)) return true;
  return failed(TF_RESOURCE_EXHAUSTED, 0,
                "no memory of %zu bytes to share with the process of the plugin",
                size);
}

bool WorkerCall::perform(wire::Request request) {
  if (size_ > 0) request.size = size_;
  request.first = static_cast<uint32_t>(first_size_);
  Outcome outcome = ask(request);
  // Nothing has begun in a process that had ended before: another one may do it.
  if (outcome == Outcome::kNotBegun && wanted_run_ == 0) {
    if (!acquire_again()) return false;
    outcome = ask(request);
  }
  if (outcome == Outcome::kNotBegun) lost(false, channel_->run);
  if (outcome == Outcome::kNotBegun && wanted_run_ != 0) status_->mark = kFileLost;
  return outcome == Outcome::kDone && check_reply();
}

WorkerCall::Outcome WorkerCall::ask(const wire::Request& request) {
  for (;;) {
    Outcome outcome = send(request);
    if (outcome == Outcome::kDone) outcome = receive();
    if (outcome != Outcome::kRefused) return outcome;
    if (!acquire_other()) return Outcome::kFailed;
  }
}

WorkerCall::Outcome WorkerCall::send(wire::Request request) {
  request.serial = ++channel_->serial;
  is_answered_ = false;
  MessageParts parts = {&request, sizeof request};
  if (size_ <= wire::kInline) {
    parts.body = const_cast<char*>(data_);
    parts.body_size = first_size_;
    parts.rest = const_cast<char*>(second_);
    parts.rest_size = size_ - first_size_;
  } else {
    request.place = wire::kInArea;
    std::memcpy(channel_->area.bytes(), data_, first_size_);
    if (second_ != nullptr) std::memcpy(channel_->area.bytes() + first_size_, second_, size_ - first_size_);
  }
  int files[kMostFiles];
  size_t count = 0;
  if (channel_->area_file >= 0) {
    request.files |= wire::kNewArea;
    files[count++] = channel_->area_file;
  }
  if (directory_ >= 0) {
    request.files |= wire::kDirectory;
    files[count++] = directory_;
  }
  // There is always room for one message, unless the worker does not read.
  if (send_message(channel_->socket, parts, files, count, MSG_DONTWAIT) >= 0) {
    close_file(channel_->area_file);
    channel_->is_asked = true;
    return Outcome::kDone;
  }
  if (errno == EPIPE || errno == ECONNRESET) return not_begun();
  give_up();
  failed(TF_RESOURCE_EXHAUSTED, 0, "nothing can be sent to the process of the plugin: %s",
         std::strerror(errno));
  return Outcome::kFailed;
}

WorkerCall::Outcome WorkerCall::receive() {
  const int64_t start = worker_->timeout_ms > 0 ? now_ms() : 0;
  wire::Reply& reply = channel_->reply;
  bool is_ending = false;
  for (;;) {
    close_file(file_);
    const MessageParts parts = {&reply, sizeof reply, channel_->received, wire::kInline};
    const ssize_t got = receive_message(channel_->socket, parts, &file_, 1);
    const int number = got < 0 ? errno : 0;
    if (got > 0 || number == EMSGSIZE) {
      const bool is_reply = got >= static_cast<ssize_t>(sizeof reply);
      received_ = is_reply ? static_cast<size_t>(got) - sizeof reply : 0;
      if (!is_reply) reply.place = UINT32_MAX;  // which is none
      channel_->is_asked = false;
      return Outcome::kDone;
    }
    if (number == ECONNRESET || (got == 0 && was_unread(channel_->socket))) return not_begun();
    if (got == 0 || (is_ending && has_ended())) {
      lost(false, channel_->run);
      return Outcome::kFailed;
    }
    if (number != EAGAIN && number != EINTR) {
      give_up();
      failed(TF_RESOURCE_EXHAUSTED, 0, "nothing can be received from the process of the plugin: %s",
             std::strerror(number));
      return Outcome::kFailed;
    }
    is_ending = has_ended();  // its channel ends a little later, and then it is known what it has begun
    const Outcome outcome = check_wait(worker_->timeout_ms > 0 ? now_ms() - start : 0);
    if (outcome != Outcome::kDone) return outcome;
  }
}

WorkerCall::Outcome WorkerCall::not_begun() {
  return is_refused() ? Outcome::kRefused : Outcome::kNotBegun;
}

// Another thread may fork while a channel is made: the child then has the worker's end of its socket too,
// which has no end while the child lives. The control socket has one.
bool WorkerCall::has_ended() {
  const LockGuard lock(worker_->lock);
  pollfd control = {channel_->run == worker_->run ? worker_->control : -1, 0, 0};
  return channel_->run != worker_->run || poll(&control, 1, 0) > 0;
}

// Of a channel that has ended: whether the process goes on, with others that it serves. Its control
// socket may end a little later than the channel.
bool WorkerCall::is_refused() {
  int control = -1;
  {
    const LockGuard lock(worker_->lock);
    if (channel_->run != worker_->run || worker_->control < 0 || worker_->channels < 2) return false;
    control = fcntl(worker_->control, F_DUPFD_CLOEXEC, 0);  // another thread may close it
  }
  const bool lives = control >= 0 && !ends_within(control, kTimeToEndMs);
  close_file(control);
  return lives;
}

// Whether to wait on.
WorkerCall::Outcome WorkerCall::check_wait(int64_t waited_ms) {
  if (is_interrupted()) {
    {
      const LockGuard lock(worker_->lock);
      ++worker_->given_up;
    }
    give_up();  // the call goes on in the worker, and its reply is dropped there
    failed(TF_CANCELLED, kInterrupted, "interrupted");
    return Outcome::kFailed;
  }
  if (channel_->forks != fork_generation()) {  // in a handler, and this is the child
    give_up();
    failed(TF_UNAVAILABLE, wanted_run_ != 0 ? kFileLost : kWorkerEnded,
           "this process was forked during the call, whose answer is for its parent");
    return Outcome::kFailed;
  }
  if (worker_->timeout_ms == 0 || waited_ms < worker_->timeout_ms) return Outcome::kDone;
  lost(true, channel_->run);
  return Outcome::kFailed;
}

bool WorkerCall::check_reply() {
  const wire::Reply& reply = channel_->reply;
  if (reply.place == wire::kInFile && file_ < 0) {
    int other = fcntl(channel_->socket, F_DUPFD_CLOEXEC, 0);
    if (other < 0) {  // so there was no number for the file either
      return failed(TF_RESOURCE_EXHAUSTED, 0, "what the process of the plugin sent cannot be received: %s",
                    std::strerror(errno));
    }
    close_file(other);
  }
  const bool has_room = reply.place == wire::kInMessage ? reply.size <= received_
                        : reply.place == wire::kInArea ? reply.size <= channel_->area.size()
                                                       : reply.place == wire::kInFile && file_ >= 0;
  if (!has_room || reply.code < 0 || reply.code > TF_UNAUTHENTICATED || reply.serial != channel_->serial) {
    return failed(TF_INTERNAL, kInvalidReply,
                  "the process of the plugin sent a reply of code %d with %llu bytes in place %u to call "
                  "%u, expected one to call %u",
                  reply.code, static_cast<unsigned long long>(reply.size), reply.place, reply.serial,
                  channel_->serial);
  }
  is_answered_ = true;
  if (reply.code == TF_OK) return true;
  if ((reply.flags & wire::kFilesRefused) != 0) channel_->drop_area();
  // A worker closes its filesystems when it is to end, which only the host decides.
  if ((reply.flags & wire::kClosed) != 0 && !is_closed()) return lost(false, channel_->run);
  channel_->received[reply.place == wire::kInMessage ? reply.size : 0] = '\0';
  mtf_status_set(status_, reply.code, channel_->received);
  status_->mark = (reply.flags & wire::kThrown) != 0   ? kThrownInWorker
                  : (reply.flags & wire::kClosed) != 0 ? kClosedInWorker
                                                       : 0;
  return false;
}

bool WorkerCall::is_closed() {
  const LockGuard lock(worker_->lock);
  return worker_->is_closed;
}

const char* WorkerCall::payload() const {
  const bool is_in_area = channel_->reply.place == wire::kInArea && channel_->reply.size > 0;
  return is_in_area ? channel_->area.bytes() : channel_->received;
}

const char* WorkerCall::map(uint64_t most, bool* mapped) {
  *mapped = false;
  const wire::Reply& reply = channel_->reply;
  if (reply.size > most) {
    failed(TF_INTERNAL, kInvalidReply, "the process of the plugin sent %llu bytes, expected at most %llu",
           static_cast<unsigned long long>(reply.size), static_cast<unsigned long long>(most));
    return nullptr;
  }
  if (reply.place != wire::kInFile) return payload();
  if (!is_whole_and_sealed(file_, reply.size)) {
    reject_reply("a file that is not sealed, too short, or has holes");
    return nullptr;
  }
  if (reply.size == 0) return channel_->received;
  // Private: a shared mapping of a file that is sealed against writing is refused by older kernels.
  void* memory = mmap(nullptr, reply.size, PROT_READ, MAP_PRIVATE, file_, 0);
  if (memory == MAP_FAILED) {
    failed(TF_RESOURCE_EXHAUSTED, 0, "no address space for %llu bytes",
           static_cast<unsigned long long>(reply.size));
    return nullptr;
  }
  *mapped = true;
  return static_cast<const char*>(memory);
}

char* WorkerCall::copy_payload(uint64_t most) {
  bool mapped = false;
  const char* bytes = map(most, &mapped);
  if (bytes == nullptr) return nullptr;
  const auto size = static_cast<size_t>(channel_->reply.size);
  auto* copy = static_cast<char*>(std::malloc(size + 1));
  if (copy != nullptr) {
    std::memcpy(copy, bytes, size);
    copy[size] = '\0';
  } else {
    failed(TF_RESOURCE_EXHAUSTED, 0, "no memory for what the process of the plugin sent");
  }
  if (mapped) munmap(const_cast<char*>(bytes), size);
  return copy;
}

// Has the channel closed, not used again.
void WorkerCall::give_up() {
  if (channel_ != nullptr) channel_->run = 0;
}

// Tells of the end of a process, which may not be the one of now any more.
bool WorkerCall::lost(bool is_late, int64_t run) {
  {
    const LockGuard lock(worker_->lock);
    if (run == worker_->run && worker_->control >= 0) disconnect(*worker_);
  }
  give_up();
  worker_->changed.notify_all();
  char text[kMostOfAText] = "";
  mtf_upcall_worker_ended(worker_->number, run, is_late ? 1 : 0, text, sizeof text);
  text[sizeof text - 1] = '\0';
  return failed(is_late ? TF_DEADLINE_EXCEEDED : TF_UNAVAILABLE, is_late ? kWorkerLate : kWorkerEnded, "%s",
                text[0] != '\0' ? text : "the process of the plugin has ended");
}

// -- how a call gets a channel to the process of a worker, and gives it back ---------------------------------

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
        const int64_t run = worker_->run;
        lock.unlock();
        lost(false, run);
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
  if (worker_->is_closed) disconnect(*worker_);  // meanwhile
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
  lost(false, channel_->run);
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
  const bool is_own = channel_->forks == fork_generation();  // else the parent uses it, and counts it
  if (is_own) channel_->area.leave(Area::kHost);
  UniqueLock lock(worker_->lock);
  forget_parents(*worker_);
  const bool is_of_now =
      channel_->run == worker_->run && worker_->control >= 0 && !worker_->is_closed;
  if (is_of_now) {
    channel_->next = worker_->idle;
    worker_->idle = channel_;
  } else if (is_own) {
    --worker_->channels;
  }
  if (is_own) --worker_->in_flight;
  const bool is_awaited = worker_->waiting > 0;
  lock.unlock();
  if (is_awaited) worker_->changed.notify_all();  // which is a call of the system
  if (!is_of_now) delete channel_;
  channel_ = nullptr;
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
