#include "worker_call.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "uri.h"
#include "worker_upcalls.h"

namespace mtf {
namespace {

constexpr int64_t kFirstLookMs = 10;  // sooner than the next tick would cost a timer of its own
constexpr int kTimeToEndMs = 200;
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

}  // namespace

WorkerCall::WorkerCall(mtf_worker* worker, TF_Status* status, int64_t run, bool waits)
    : outer_(innermost_), worker_(worker), status_(status), wanted_run_(run), waits_(waits) {
  innermost_ = this;
  acquire();
}

WorkerCall::~WorkerCall() {
  close_file(file_);
  close_file(directory_);
  if (is_begun_) give_up();
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
  const auto ask = [&] {
    for (;;) {
      Way way = send(request);
      if (way == Way::kDone) way = receive();
      if (way != Way::kRefused) return way;
      if (!acquire_other()) return Way::kFailed;
    }
  };
  Way way = ask();
  // Nothing has begun in a process that had ended before: another one may do it.
  if (way == Way::kNoProcess && wanted_run_ == 0) {
    if (!acquire_again()) return false;
    way = ask();
  }
  if (way == Way::kNoProcess) lost(false);
  if (way == Way::kNoProcess && wanted_run_ != 0) status_->mark = kFileLost;
  return way == Way::kDone && check_reply();
}

bool WorkerCall::begin(const wire::Request& request) {
  begun_ = request;
  is_begun_ = without_process(send(request)) == Way::kDone;
  return is_begun_;
}

void WorkerCall::bring_room(size_t size) {
  const auto is_awaited = [&] { return channel_->line->turn.load() == kOfWorker; };
  while (is_awaited() && channel_->bring_huge_page(size)) {
  }
}

bool WorkerCall::finish() {
  is_begun_ = false;
  Way way = receive();
  while (way == Way::kRefused) {
    way = acquire_other() ? send(begun_) : Way::kFailed;
    if (way == Way::kDone) way = receive();
  }
  return without_process(way) == Way::kDone && check_reply();
}

// Of a file that is open in a process which has ended.
WorkerCall::Way WorkerCall::without_process(Way way) {
  if (way == Way::kNoProcess) {
    lost(false);
    status_->mark = kFileLost;
  }
  return way;
}

WorkerCall::Way WorkerCall::send(const wire::Request& header) {
  wire::Request request = header;
  request.serial = ++channel_->serial;
  is_answered_ = false;
  if (size_ > 0) {
    const bool is_long = size_ > wire::kInline;
    request.place = is_long ? wire::kInArea : wire::kBeside;
    while (is_long && channel_->bring_huge_page(size_)) {
    }
    char* const place = is_long ? channel_->area : channel_->line->beside;
    std::memcpy(place, data_, first_size_);
    if (second_ != nullptr) std::memcpy(place + first_size_, second_, size_ - first_size_);
  }
  if (channel_->area_file >= 0 || directory_ >= 0) {
    const Way way = send_files(request);
    if (way != Way::kDone) return way;
  }
  channel_->line->request = request;
  channel_->is_asked = true;
  hand_over(*channel_->line, kOfWorker);
  return Way::kDone;
}

WorkerCall::Way WorkerCall::send_files(wire::Request& request) {
  int files[2];
  size_t count = 0;
  if (channel_->area_file >= 0) {
    request.files |= wire::kNewArea;
    files[count++] = channel_->area_file;
  }
  if (directory_ >= 0) {
    request.files |= wire::kDirectory;
    files[count++] = directory_;
  }
  char byte = 'f';
  iovec part = {&byte, 1};
  if (send_with(channel_->socket, &part, 1, files, count) < 0) {
    if (errno == EPIPE || errno == ECONNRESET) return Way::kNoProcess;
    give_up();
    failed(TF_RESOURCE_EXHAUSTED, 0, "nothing can be sent to the process of the plugin: %s",
           std::strerror(errno));
    return Way::kFailed;
  }
  close_file(channel_->area_file);
  return Way::kDone;
}

// The end of the process is looked for whenever the sleep was in vain, and that sooner at first.
WorkerCall::Way WorkerCall::receive() {
  const int64_t start = worker_->timeout_ms > 0 ? now_ms() : 0;
  int64_t sleep_ms = kFirstLookMs;
  while (channel_->line->turn.load(std::memory_order_acquire) == kOfWorker) {
    sleep_on(*channel_->line, kOfWorker, sleep_ms);
    if (channel_->line->turn.load(std::memory_order_acquire) != kOfWorker) break;
    const Way way = look(worker_->timeout_ms > 0 ? now_ms() - start : 0);
    if (way != Way::kDone) return way;
    sleep_ms = sleep_ms * 2 < kLookForSignalsMs ? sleep_ms * 2 : kLookForSignalsMs;
  }
  channel_->is_asked = false;
  take_reply();
  return Way::kDone;
}

// Another thread may fork while a channel is made: the child then has the worker's end of its socket too,
// which has no end while the child lives. The control socket has one.
bool WorkerCall::has_ended() {
  const LockGuard lock(worker_->lock);
  const bool is_of_now = channel_->run == worker_->run;
  pollfd ends[] = {{channel_->socket, 0, 0}, {is_of_now ? worker_->control : -1, 0, 0}};
  return poll(ends, 2, 0) > 0;
}

// Of a channel that has ended: whether the process goes on, with others that it serves. Its control
// socket may end a little later than the channel.
bool WorkerCall::is_refused() {
  pollfd control = {-1, 0, 0};
  {
    const LockGuard lock(worker_->lock);
    if (channel_->run != worker_->run || worker_->control < 0 || worker_->channels < 2) return false;
    control.fd = fcntl(worker_->control, F_DUPFD_CLOEXEC, 0);  // another thread may close it
  }
  const bool lives = control.fd >= 0 && poll(&control, 1, kTimeToEndMs) == 0;
  close_file(control.fd);
  return lives;
}

// Whether to wait on.
WorkerCall::Way WorkerCall::look(int64_t waited_ms) {
  if (has_ended()) return ended();
  if (is_interrupted()) {
    {
      const LockGuard lock(worker_->lock);
      ++worker_->given_up;
    }
    give_up();  // the call goes on in the worker, and its reply is dropped there
    failed(TF_CANCELLED, kInterrupted, "interrupted");
    return Way::kFailed;
  }
  if (channel_->forks != fork_generation()) {  // in a handler, and this is the child
    give_up();
    failed(TF_UNAVAILABLE, wanted_run_ != 0 ? kFileLost : kWorkerEnded,
           "this process was forked during the call, whose answer is for its parent");
    return Way::kFailed;
  }
  if (worker_->timeout_ms == 0 || waited_ms < worker_->timeout_ms) return Way::kDone;
  lost(true);
  return Way::kFailed;
}

// Nothing begins after the host has left: either side writes first, then reads what the other one wrote.
WorkerCall::Way WorkerCall::ended() {
  if (channel_->line->turn.exchange(kLeft) != kOfWorker) return Way::kDone;  // and answered before
  if (channel_->line->taken.load() != channel_->serial) {
    return is_refused() ? Way::kRefused : Way::kNoProcess;
  }
  lost(false);
  return Way::kFailed;
}

void WorkerCall::take_reply() {
  std::memcpy(&channel_->reply, &channel_->line->reply, sizeof channel_->reply);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // it is not read there again
  close_file(file_);                                    // of a reply before
  if (channel_->reply.place == wire::kInFile) take_file();
}

// Takes the descriptor that belongs to the reply, if it is one.
void WorkerCall::take_file() {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  char byte;
  iovec part = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_LEN(sizeof file_);  // a second one would fit into the padding
  if (recvmsg(channel_->socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) <= 0) return;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) return;
  std::memcpy(&file_, CMSG_DATA(header), sizeof file_);
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) close_file(file_);
}

bool WorkerCall::check_reply() {
  const wire::Reply& reply = channel_->reply;
  const bool has_room = reply.place == wire::kBeside   ? reply.size <= wire::kInline
                        : reply.place == wire::kInArea ? reply.size <= channel_->area_size
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
  // A worker closes its filesystems when it is to end, which only the host decides.
  if ((reply.flags & wire::kClosed) != 0 && !is_closed()) return lost(false);
  const size_t size = reply.place == wire::kBeside ? static_cast<size_t>(reply.size) : 0;
  // A copy, which the worker does not change.
  const std::unique_ptr<char[]> text(new (std::nothrow) char[size + 1]);
  if (text == nullptr) return failed(TF_RESOURCE_EXHAUSTED, 0, "no memory for the error of the plugin");
  std::memcpy(text.get(), channel_->line->beside, size);
  text[size] = '\0';
  mtf_status_set(status_, reply.code, text.get());
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
  const bool is_beside = channel_->reply.place == wire::kBeside || channel_->reply.size == 0;
  return is_beside ? channel_->line->beside : channel_->area;
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
  if (reply.size == 0) return channel_->line->beside;
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

// Tells of the end of the process.
bool WorkerCall::lost(bool is_late) {
  int64_t run;
  {
    UniqueLock lock(worker_->lock);
    run = channel_ != nullptr ? channel_->run : worker_->run;
    if (run == worker_->run && worker_->control >= 0) disconnect(*worker_);
  }
  if (channel_ != nullptr) give_up();
  worker_->changed.notify_all();
  char text[kMostOfAText] = "";
  mtf_upcall_worker_ended(worker_->number, run, is_late ? 1 : 0, text, sizeof text);
  text[sizeof text - 1] = '\0';
  return failed(is_late ? TF_DEADLINE_EXCEEDED : TF_UNAVAILABLE, is_late ? kWorkerLate : kWorkerEnded, "%s",
                text[0] != '\0' ? text : "the process of the plugin has ended");
}

}  // namespace mtf
