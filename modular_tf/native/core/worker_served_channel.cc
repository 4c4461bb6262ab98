#include "worker_served_channel.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "shared_memory.h"

namespace mtf {
namespace {

constexpr int64_t kAreaKeptMs = 500;  // a page that the kernel brings again costs more than a copy

int64_t now_ms() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count();
}

Error no_memory() {
  return make_error(TF_RESOURCE_EXHAUSTED, "no memory for the reply of the plugin's process");
}

}  // namespace

bool take_descriptors(const msghdr& message, int* files, size_t count) {
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr) return false;
  const size_t come = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  int taken[2];
  std::memcpy(taken, CMSG_DATA(header), come * sizeof(int));
  if (come == count) {
    std::memcpy(files, taken, count * sizeof(int));
    return true;
  }
  for (size_t i = 0; i < come; ++i) close(taken[i]);
  return false;
}

ServedChannel::~ServedChannel() {
  close(socket_);
  munmap(&line_, sizeof line_);
  if (area_ != nullptr) munmap(area_, area_size_);
}

bool ServedChannel::take_request() {
  uint32_t turn;
  while ((turn = line_.turn.load(std::memory_order_acquire)) == kOfHost) {
    const int64_t left_ms = is_area_used_ ? area_used_ms_ + kAreaKeptMs - now_ms() : 0;
    if (is_area_used_ && left_ms <= 0) {
      empty_area();
    } else {
      sleep_on(line_, kOfHost, left_ms);
    }
  }
  if (turn != kOfWorker) return false;
  request_ = line_.request;
  line_.taken.store(request_.serial);
  if (line_.turn.load() != kOfWorker) return false;  // as WorkerCall::ended() has it: nothing begins
  reply_ = {};
  reply_.serial = request_.serial;
  return request_.files == 0 || take_files();
}

// Gives the memory of the area back, unless the host has begun to use it for its next request.
void ServedChannel::empty_area() {
  area_used_ms_ = now_ms();
  uint32_t use = kUnused;
  if (!line_.area.compare_exchange_strong(use, kEmptying)) return;
  madvise(area_, area_size_, MADV_REMOVE);
  is_area_used_ = false;
  use = kEmptying;
  line_.area.compare_exchange_strong(use, kEmpty);  // the host may have taken it, and makes another
}

bool ServedChannel::take_files() {
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
  char byte;
  iovec part = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got;
  do {
    got = recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  const bool has_area = (request_.files & wire::kNewArea) != 0;
  const bool has_directory = (request_.files & wire::kDirectory) != 0;
  int files[2];
  const size_t count = (has_area ? 1 : 0) + (has_directory ? 1 : 0);
  if (got <= 0 || !take_descriptors(message, files, count)) return false;
  const int* next = files;
  if (has_area && !map_area(*next++)) return false;
  return !has_directory || change_directory(*next);
}

// Of this thread alone.
bool ServedChannel::change_directory(int directory) {
  if (!has_own_directory_) has_own_directory_ = unshare(CLONE_FS) == 0;
  const bool changed = has_own_directory_ && fchdir(directory) == 0;
  close(directory);
  return changed;
}

bool ServedChannel::map_area(int file) {
  struct stat found;
  void* made = nullptr;
  if (fstat(file, &found) == 0) made = map_shared_memory(file, static_cast<size_t>(found.st_size));
  close(file);
  if (made == nullptr) return false;
  if (area_ != nullptr) munmap(area_, area_size_);
  area_ = static_cast<char*>(made);
  area_size_ = static_cast<size_t>(found.st_size);
  return true;
}

Error ServedChannel::answer(const char* bytes, size_t size) {
  const bool is_small = size <= wire::kInline;
  const bool is_area_kept = line_.area.load() == kOfCall;  // until the host has looked at the reply
  if (!is_small && (size > area_size_ || !is_area_kept)) return answer_in_file(bytes, size);
  if (size > 0) std::memcpy(is_small ? line_.beside : area_, bytes, size);  // an empty list has no bytes
  reply_.size = size;
  reply_.place = is_small ? wire::kBeside : wire::kInArea;
  return nullptr;
}

Error ServedChannel::answer_in_file(const char* bytes, size_t size) {
  reply_.size = size;
  reply_.place = wire::kInFile;
  file_ = memfd_create("modular_tf reply", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  bool whole = file_ >= 0;
  for (size_t done = 0; whole && done < size;) {
    const ssize_t wrote = write(file_, bytes + done, size - done);
    if (wrote < 0 && errno == EINTR) continue;
    whole = wrote > 0;
    if (whole) done += static_cast<size_t>(wrote);
  }
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
  if (whole && fcntl(file_, F_ADD_SEALS, kSeals) == 0) return nullptr;
  if (file_ >= 0) close(file_);
  file_ = -1;
  return no_memory();
}

void ServedChannel::tell(const Error& error) {
  const size_t length = std::strlen(error.message());
  reply_.code = error.code();
  reply_.flags =
      (error.is_thrown() ? wire::kThrown : 0u) | (error.is_closed() ? wire::kClosed : 0u);
  reply_.size = length < wire::kInline ? length : wire::kInline;
  reply_.place = wire::kBeside;
  std::memcpy(line_.beside, error.message(), static_cast<size_t>(reply_.size));
}

void ServedChannel::reply() {
  if (file_ >= 0) send_file();
  if (area_ != nullptr && line_.area.load() == kOfCall) {
    is_area_used_ = true;
    area_used_ms_ = now_ms();
  }
  line_.reply = reply_;
  replied_ = request_.serial;
  hand_back(line_);
}

void ServedChannel::send_file() {
  char byte = 'f';
  iovec part = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &file_, sizeof file_);
  ssize_t sent;
  do {
    sent = sendmsg(socket_, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) tell(no_memory());
  close(file_);
  file_ = -1;
}

bool ServedChannel::is_unread() const {
  return line_.turn.load(std::memory_order_acquire) == kLeftUnread && line_.request.serial == replied_ &&
         replied_ != 0;
}

}  // namespace mtf
