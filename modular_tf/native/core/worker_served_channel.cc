#include "worker_served_channel.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fd_message.h"
#include "shared_memory.h"

namespace mtf {
namespace {

Error no_memory() {
  return make_error(TF_RESOURCE_EXHAUSTED, "no memory for the reply of the plugin's process");
}

}  // namespace

ServedChannel::~ServedChannel() {
  close(socket_);
  if (area_ != nullptr) munmap(area_, area_size_);
}

bool ServedChannel::take_request() {
  int files[kMostFiles];
  const wire::Request last = request_;
  ssize_t got;
  do {
    got = receive_message(socket_, {&request_, sizeof request_, message_, wire::kInline}, files, kMostFiles);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno != ECONNRESET) _exit(1);  // the plugin has closed or moved the socket: the host would wait
  if (got < static_cast<ssize_t>(sizeof request_)) return false;
  if (request_.operation == wire::kForget) {
    request_ = last;
    is_unread_ = true;
    return false;
  }
  reply_ = {};
  reply_.serial = request_.serial;
  if (use_files(files)) return true;
  report(make_error(TF_RESOURCE_EXHAUSTED, "the process of the plugin has no descriptor or no memory for this call"));
  reply();
  return false;
}

// False where they do not come, since this process had no number for one of them, or cannot be used.
bool ServedChannel::use_files(int* files) {
  const int* next = files;
  bool are_used = true;
  if ((request_.files & wire::kNewArea) != 0) are_used = map_area(*next++);
  if ((request_.files & wire::kDirectory) != 0) are_used = change_directory(*next++) && are_used;
  for (size_t i = 0; i < kMostFiles; ++i) close_file(files[i]);
  return are_used;
}

// Of this thread alone.
bool ServedChannel::change_directory(int directory) {
  if (directory < 0) return false;
  if (!has_own_directory_) has_own_directory_ = unshare(CLONE_FS) == 0;
  return has_own_directory_ && fchdir(directory) == 0;
}

bool ServedChannel::map_area(int file) {
  struct stat found;
  if (file < 0 || fstat(file, &found) != 0) return false;
  void* made = map_shared_memory(file, static_cast<size_t>(found.st_size));
  if (made == nullptr) return false;
  if (area_ != nullptr) munmap(area_, area_size_);
  area_ = static_cast<char*>(made);
  area_size_ = static_cast<size_t>(found.st_size);
  return true;
}

Error ServedChannel::answer(const char* bytes, size_t size) {
  if (size > wire::kInline) return answer_in_file(bytes, size);
  if (size > 0) std::memcpy(message_, bytes, size);  // an empty list has no bytes
  reply_.size = size;
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
  return no_memory();
}

void ServedChannel::report(const Error& error) {
  const size_t length = std::strlen(error.message());
  close_file(file_);
  reply_.code = error.code();
  reply_.flags =
      (error.is_thrown() ? wire::kThrown : 0u) | (error.is_closed() ? wire::kClosed : 0u);
  reply_.size = length < wire::kInline ? length : wire::kInline;
  reply_.place = wire::kInMessage;
  std::memcpy(message_, error.message(), static_cast<size_t>(reply_.size));
}

// Where the host has left nobody reads it. A process that cannot reply ends, so that the host does not wait.
void ServedChannel::reply() {
  const auto send = [&] {
    const size_t size = reply_.place == wire::kInMessage ? static_cast<size_t>(reply_.size) : 0;
    return send_message(socket_, {&reply_, sizeof reply_, message_, size}, &file_, file_ >= 0 ? 1 : 0);
  };
  ssize_t sent = send();
  if (sent < 0 && file_ >= 0) {
    report(no_memory());
    sent = send();
  }
  if (sent < 0 && errno != EPIPE && errno != ECONNRESET) _exit(1);
  close_file(file_);
}

}  // namespace mtf
