// The worker process: answers the calls of the host, one thread for each channel.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "fd_message.h"
#include "filesystem_state.h"
#include "oldest_call.h"
#include "worker.h"
#include "worker_area.h"
#include "worker_options.h"
#include "worker_wire.h"

using mtf::Error;
using mtf::Slot;
using namespace mtf::wire;

namespace {

constexpr int kIdleMs = 1000;  // before the memory of an area is given back

Error no_memory() {
  return mtf::make_error(TF_RESOURCE_EXHAUSTED, "no memory for the reply of the plugin's process");
}

// What the host has open, by the numbers that it knows it by.
template <class Object>
class Numbered {
 public:
  uint64_t add(const Object& object) {
    const mtf::LockGuard lock(lock_);
    objects_[++last_] = object;
    return last_;
  }
  // One number for one object.
  uint64_t number_of(const Object& object) {
    const mtf::LockGuard lock(lock_);
    for (const auto& [number, other] : objects_) {
      if (other == object) return number;
    }
    objects_[++last_] = object;
    return last_;
  }
  // Null where the number is none's. With `take` it is none's from now on.
  Object find(uint64_t number, bool take = false) {
    const mtf::LockGuard lock(lock_);
    const auto found = objects_.find(number);
    if (found == objects_.end()) return {};
    const Object object = found->second;
    if (take) objects_.erase(found);
    return object;
  }
  Object take(uint64_t number) { return find(number, true); }

 private:
  mtf::Lock lock_;
  uint64_t last_ = 0;
  std::map<uint64_t, Object> objects_;
};

// The calls about a file own it too: one that the host has given up may go on after the release.
using Reader = std::shared_ptr<mtf_reader>;
using Writer = std::shared_ptr<mtf_writer>;

struct Server {
  mtf_filesystem** filesystems;
  uint32_t count;
  Numbered<Reader> readers;
  Numbered<Writer> writers;
  Numbered<std::pair<mtf_filesystem*, TF_TransactionToken*>> transactions;
};

// A writer that is let go of without its close, if there is one: nothing is to be kept.
void discard(const Writer& writer) {
  if (writer != nullptr) mtf::drop(Error(mtf_writer_discard(writer.get())));
}

// The worker's end of a channel: takes requests, makes their calls, and replies. Used by one thread.
class ChannelServer {
 public:
  ChannelServer(Server& server, int socket) : server_(server), socket_(socket) {}  // owns it
  ~ChannelServer() { close(socket_); }
  ChannelServer(const ChannelServer&) = delete;
  ChannelServer& operator=(const ChannelServer&) = delete;

  void serve() {
    mtf::CallingThread calling;
    while (take_request()) {
      opened_ = 0;
      calling.begin();
      Error error;
      if (Error thrown = mtf::without_exceptions([&] { error = perform(); })) error = std::move(thrown);
      calling.end();
      if (mtf::fork_generation() != forks_) _exit(1);  // the process that the plugin has made of this one
      if (error) report(error);
      reply();
    }
    if (is_unread_) undo();
  }

 private:
  // Waits for a request; false where the host has left.
  bool take_request() {
    for (;;) {
      int files[mtf::kMostFiles];
      const Request last = request_;
      // A thread that is killed while it waits for a message may take one that comes; one that polls takes none, so
      // that the host gets ECONNRESET and knows that nothing has begun.
      pollfd next = {socket_, POLLIN, 0};
      for (bool is_idle = area_.size() == 0;;) {
        const int found = poll(&next, 1, is_idle ? -1 : kIdleMs);
        if (found == 0) is_idle = area_.empty();
        if (found > 0 || (found < 0 && errno != EINTR)) break;
      }
      ssize_t got;
      do {
        got = mtf::receive_message(socket_, {&request_, sizeof request_, message_, kInline}, files, mtf::kMostFiles);
      } while (got < 0 && errno == EINTR);
      if (got < 0 && errno != ECONNRESET) _exit(1);  // the plugin has closed or moved the socket: the host would wait
      if (got < static_cast<ssize_t>(sizeof request_)) return false;
      if (request_.operation == kForget) {
        request_ = last;
        is_unread_ = true;
        return false;
      }
      reply_ = {};
      reply_.serial = request_.serial;
      if (use_files(files)) return true;
      request_.operation = kForget;  // nothing is opened
      report(mtf::make_error(TF_RESOURCE_EXHAUSTED, "the process of the plugin has no descriptor or no memory for this call"));
      reply_.flags = kFilesRefused;
      reply();
    }
  }

  // False where they do not come, since this process had no number for one of them, or cannot be used.
  bool use_files(int* files) {
    const int* next = files;
    bool are_used = true;
    if ((request_.files & kNewArea) != 0) are_used = area_.map(*next++);
    if ((request_.files & kDirectory) != 0) are_used = change_directory(*next++) && are_used;
    for (size_t i = 0; i < mtf::kMostFiles; ++i) mtf::close_file(files[i]);
    return are_used;
  }

  // Of this thread alone.
  bool change_directory(int directory) {
    if (directory < 0) return false;
    if (!has_own_directory_) has_own_directory_ = unshare(CLONE_FS) == 0;
    return has_own_directory_ && fchdir(directory) == 0;
  }

  // Puts bytes into the reply wherever there is room.
  Error answer(const char* bytes, size_t size) {
    if (size > kInline) return answer_in_file(bytes, size);
    if (size > 0) std::memcpy(message_, bytes, size);  // an empty list has no bytes
    reply_.size = size;
    return nullptr;
  }

  Error answer_in_file(const char* bytes, size_t size) {
    reply_.size = size;
    reply_.place = kInFile;
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

  // Puts an error into the reply instead of all else.
  void report(const Error& error) {
    const size_t length = std::strlen(error.message());
    mtf::close_file(file_);
    reply_.code = error.code();
    reply_.flags =
        (error.is_thrown() ? kThrown : 0u) | (error.is_closed() ? kClosed : 0u);
    reply_.size = length < kInline ? length : kInline;
    reply_.place = kInMessage;
    std::memcpy(message_, error.message(), static_cast<size_t>(reply_.size));
  }

  // Where the host has left nobody reads it. A process that cannot reply ends, so that the host does not wait.
  void reply() {
    const auto send = [&] {
      const size_t size = reply_.place == kInMessage ? static_cast<size_t>(reply_.size) : 0;
      return mtf::send_message(socket_, {&reply_, sizeof reply_, message_, size}, &file_, file_ >= 0 ? 1 : 0);
    };
    ssize_t sent = send();
    if (sent < 0 && file_ >= 0) {
      report(no_memory());
      sent = send();
    }
    if (sent < 0 && errno != EPIPE && errno != ECONNRESET) _exit(1);
    mtf::close_file(file_);
  }

  const char* payload() const { return request_.place == kInArea ? area_.bytes() : message_; }

  Error perform() {
    if (request_.filesystem >= server_.count) {
      return mtf::make_error(TF_INVALID_ARGUMENT, "there is no such filesystem in the worker");
    }
    mtf_filesystem* const fs = server_.filesystems[request_.filesystem];
    switch (request_.operation) {
      case operation_of(Slot::new_random_access_file): return open_reader(fs);
      case operation_of(Slot::new_writable_file): return open_writer(fs, 0);
      case operation_of(Slot::new_appendable_file): return open_writer(fs, 1);
      case operation_of(Slot::new_read_only_memory_region_from_file): return open_region(fs);
      case operation_of(Slot::paths_exist): return paths_exist(fs);
      case kStatAndOpenReader: return stat_and_open_reader(fs);
      case kRead:
      case kReleaseReader: return on_reader();
      default: return request_.operation < mtf::kSlotCount ? call_slot(fs) : on_writer();
    }
  }

  // A slot that is called as its type says.
  Error call_slot(mtf_filesystem* fs) {
    const auto slot = static_cast<Slot>(request_.operation);
    const mtf::SlotInfo& info = mtf::info_of(slot);
    mtf::SlotValues values(info.text_count > 0 ? payload() : nullptr,
                           info.text_count > 1 ? payload() + request_.first : nullptr);
    mtf::OwnedOptions given;
    if (info.takes_token) {
      const uint64_t number = request_.file;
      const auto [owner, token] = server_.transactions.find(number);
      const bool is_open = owner == fs && token != nullptr;
      // Another thread may end it too.
      if (is_open && (slot != Slot::end_transaction || server_.transactions.take(number).second != nullptr)) {
        values.token = token;
      }
      if (values.token == nullptr) return mtf::make_error(TF_INVALID_ARGUMENT, "the transaction has ended");
    }
    if (info.takes_options) {
      if (!mtf::read_options(payload(), static_cast<size_t>(request_.size), request_.count, given)) {
        return mtf::make_error(TF_RESOURCE_EXHAUSTED, "no memory for options in the process of the plugin");
      }
      values.options = given.options;
      values.option_count = given.count;
    }
    Error error = mtf::call_slot(slot, fs, values);
    std::memcpy(reply_.numbers, values.numbers, sizeof reply_.numbers);
    if (error) return error;
    if (info.makes_token) reply_.numbers[0] = static_cast<int64_t>(server_.transactions.number_of({fs, values.token}));
    if (info.makes_options) return answer_options(fs, values);
    if (!info.makes_names && !info.makes_text) return nullptr;
    reply_.numbers[0] = values.strings.count;
    return answer(values.strings.bytes, values.strings.size);
  }

  Error answer_options(mtf_filesystem* fs, const mtf::SlotValues& values) {
    std::string bytes;
    const bool are_written = mtf::write_options(values.options, values.option_count, bytes);
    mtf_options_free(fs, values.options, values.option_count);
    if (!are_written) return mtf::make_error(TF_RESOURCE_EXHAUSTED, mtf::kTooManyOptions);
    reply_.numbers[0] = values.option_count;
    return answer(bytes.data(), bytes.size());
  }

  Error paths_exist(mtf_filesystem* fs) {
    const char* path = payload();
    mtf_error* path_error = nullptr;
    int all = 0;
    Error error(mtf_paths_exist(fs, &path, 1, &path_error, &all));
    Error of_path(path_error);
    reply_.numbers[0] = all;
    return error ? std::move(error) : std::move(of_path);
  }

  Error open_region(mtf_filesystem* fs) {
    mtf_region* region = nullptr;
    const char* data = nullptr;
    uint64_t length = 0;
    Error error(mtf_region_open(fs, payload(), &region, &data, &length));
    if (error) return error;
    error = length > 0 ? answer_in_file(data, static_cast<size_t>(length)) : Error();
    mtf_region_release(region);
    return error;
  }

  Error open_reader(mtf_filesystem* fs) {
    mtf_reader* reader = nullptr;
    Error error(mtf_reader_open(fs, payload(), &reader));
    if (!error) reply_.numbers[0] = static_cast<int64_t>(opened_ = server_.readers.add({reader, mtf_reader_release}));
    return error;
  }

  // stat comes first: where the file is replaced meanwhile, a later one finds a difference.
  Error stat_and_open_reader(mtf_filesystem* fs) {
    mtf::SlotValues found(payload());
    const bool is_found = !mtf::call_slot(Slot::stat, fs, found);
    Error error = open_reader(fs);
    reply_.numbers[1] = is_found ? found.numbers[0] : -1;
    reply_.numbers[2] = found.numbers[1];
    return error;
  }

  Error open_writer(mtf_filesystem* fs, int append) {
    mtf_writer* writer = nullptr;
    Error error(mtf_writer_open(fs, payload(), append, &writer));
    if (!error) reply_.numbers[0] = static_cast<int64_t>(opened_ = server_.writers.add({writer, mtf_writer_release}));
    return error;
  }

  // The host has not received what the last call opened.
  void undo() {
    switch (request_.operation) {
      case operation_of(Slot::new_random_access_file):
      case kStatAndOpenReader: server_.readers.take(opened_); return;
      case operation_of(Slot::new_writable_file):
      case operation_of(Slot::new_appendable_file): discard(server_.writers.take(opened_));
    }
  }

  Error no_file() {
    return mtf::make_error(TF_INVALID_ARGUMENT, "there is no such open file in the worker");
  }

  Error on_reader() {
    if (request_.operation == kReleaseReader) {
      server_.readers.take(request_.file);
      return nullptr;
    }
    const Reader reader = server_.readers.find(request_.file);
    if (reader == nullptr) return no_file();
    const auto wanted = static_cast<size_t>(request_.size);
    const bool is_small = wanted <= kInline;
    if (!is_small && wanted > area_.size()) return no_file();
    int64_t count = 0;
    Error error(mtf_reader_read(reader.get(), request_.offset, is_small ? message_ : area_.bytes(), wanted, &count));
    reply_.size = static_cast<uint64_t>(count);
    reply_.place = is_small ? kInMessage : kInArea;
    return error;
  }

  Error on_writer() {
    if (request_.operation == kReleaseWriter) {
      discard(server_.writers.take(request_.file));
      return nullptr;
    }
    const Writer found = server_.writers.find(request_.file);
    mtf_writer* const writer = found.get();
    if (writer == nullptr) return no_file();
    switch (request_.operation) {
      case kAppend:
        return Error(mtf_writer_append(writer, payload(), static_cast<size_t>(request_.size), 0));
      case kTell: return Error(mtf_writer_tell(writer, &reply_.numbers[0]));
      case kFlush: return Error(mtf_writer_flush(writer));
      case kSync: return Error(mtf_writer_sync(writer));
      case kCloseWriter: return Error(mtf_writer_close(writer));
      default: return mtf::make_error(TF_INVALID_ARGUMENT, "there is no such call in the worker");
    }
  }

  Server& server_;
  const unsigned forks_ = mtf::fork_generation();
  int socket_;
  mtf::Area area_;
  Request request_ = {};
  Reply reply_ = {};
  char message_[kInline];  // the payload of the request, then of the reply
  int file_ = -1;  // of the reply
  uint64_t opened_ = 0;  // by the last call
  bool has_own_directory_ = false;
  bool is_unread_ = false;  // the host has left without the last reply
};

void* run_channel(void* argument) {
  const std::unique_ptr<ChannelServer> channel(static_cast<ChannelServer*>(argument));
  channel->serve();
  return nullptr;
}

// Takes a channel that the host sends; false where there are no more.
bool take_channel(Server& server, int control) {
  char byte;
  int socket;
  const ssize_t got = mtf::receive_message(control, {&byte, 1}, &socket, 1);
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) return false;
  // Where there is no descriptor, no memory or no thread for it the host sees the end of the channel.
  if (socket < 0) return true;
  std::unique_ptr<ChannelServer> channel(new (std::nothrow) ChannelServer(server, socket));
  pthread_t thread;
  if (channel == nullptr) {
    close(socket);
  } else if (pthread_create(&thread, nullptr, run_channel, channel.get()) == 0) {
    channel.release();
    pthread_detach(thread);
  }
  return true;
}

}  // namespace

extern "C" mtf_error* mtf_worker_serve(int control, mtf_filesystem** filesystems, uint32_t count) {
  // Never freed: threads that hang in the plugin may still use it when this returns.
  auto* server = new Server{filesystems, count, {}, {}, {}};
  while (take_channel(*server, control)) {
  }
  return nullptr;
}
