// The worker process: answers the calls of the host, one thread for each channel.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "filesystem_state.h"
#include "oldest_call.h"
#include "worker.h"
#include "worker_open_files.h"
#include "worker_served_channel.h"
#include "worker_served_settings.h"

using mtf::Error;
using namespace mtf::wire;

namespace {

constexpr size_t kLongRead = size_t{1} << 20;
constexpr size_t kMostThatCounts = (size_t{32} << 20) - (size_t{8} << 10);

struct Server {
  mtf_filesystem** filesystems;
  uint32_t count;
  mtf::OpenFiles files;
  mtf::ServedSettings settings;
};

// Has malloc keep what a plugin frees after a long read, which the next one needs again: the largest
// block that was mapped by itself and freed decides how much that is, but none above 32 MiB counts
// (glibc's DEFAULT_MMAP_THRESHOLD_MAX). No page of it is touched.
void keep_freed_memory(size_t size) {
  static std::atomic<size_t> largest{kLongRead};
  size_t known = largest.load(std::memory_order_relaxed);
  if (size <= known || !largest.compare_exchange_strong(known, size)) return;
  void* volatile block = std::malloc(2 * size < kMostThatCounts ? 2 * size : kMostThatCounts);
  std::free(block);
}

// A writer that is let go of without its close: nothing is to be kept.
void discard(mtf_writer* writer) {
  mtf::drop(Error(mtf_writer_discard(writer)));
  mtf_writer_release(writer);
}

class ChannelServer : public mtf::ServedChannel {
 public:
  ChannelServer(Server& server, int socket, mtf::Line& line)
      : ServedChannel(socket, line), server_(server) {}

  void serve() {
    while (take_request()) {
      opened_ = 0;
      calling_.begin();
      Error error = perform();
      calling_.end();
      if (mtf::fork_generation() != forks_) _exit(1);  // the process that the plugin has made of this one
      if (error) tell(error);
      reply();
      mtf_strings_free(&strings_);
    }
    if (is_unread()) undo();
  }

 private:
  const char* first() const { return payload(); }
  const char* second() const { return payload() + request_.first; }

  Error perform() {
    if (request_.filesystem >= server_.count) {
      return mtf::make_error(TF_INVALID_ARGUMENT, "there is no such filesystem in the worker");
    }
    mtf_filesystem* const fs = server_.filesystems[request_.filesystem];
    auto& numbers = reply_.numbers;
    switch (request_.operation) {
      case kCreateDir: return Error(mtf_create_dir(fs, first()));
      case kRecursivelyCreateDir: return Error(mtf_recursively_create_dir(fs, first()));
      case kDeleteFile: return Error(mtf_delete_file(fs, first()));
      case kDeleteDir: return Error(mtf_delete_dir(fs, first()));
      case kDeleteRecursively: return delete_recursively(fs);
      case kRenameFile: return Error(mtf_rename_file(fs, first(), second()));
      case kCopyFile: return Error(mtf_copy_file(fs, first(), second()));
      case kPathExists: return Error(mtf_path_exists(fs, first()));
      case kPathsExist: return paths_exist(fs);
      case kStat: return stat_path(fs);
      case kIsDirectory: return is_directory(fs);
      case kGetFileSize: return Error(mtf_get_file_size(fs, first(), &numbers[0]));
      case kGetChildren: return list(mtf_get_children, fs);
      case kGetMatchingPaths: return list(mtf_get_matching_paths, fs);
      case kTranslateName: return translate_name(fs);
      case kFlushCaches: return Error(mtf_flush_caches(fs));
      case kOpenRegion: return open_region(fs);
      case kOpenReader: return open_reader(fs);
      case kLookAndOpenReader: return look_and_open_reader(fs);
      case kOpenWriter: return open_writer(fs, 0);
      case kOpenAppender: return open_writer(fs, 1);
      case kRead:
      case kReleaseReader: return on_reader();
      default: return request_.operation < kStartTransaction ? on_writer() : on_settings(fs);
    }
  }

  Error delete_recursively(mtf_filesystem* fs) {
    uint64_t files = 0;
    uint64_t dirs = 0;
    Error error(mtf_delete_recursively(fs, first(), &files, &dirs));
    reply_.numbers[0] = static_cast<int64_t>(files);
    reply_.numbers[1] = static_cast<int64_t>(dirs);
    return error;
  }

  Error paths_exist(mtf_filesystem* fs) {
    const char* path = first();
    mtf_error* told = nullptr;
    int all = 0;
    Error error(mtf_paths_exist(fs, &path, 1, &told, &all));
    Error one(told);
    reply_.numbers[0] = all;
    return error ? std::move(error) : std::move(one);
  }

  Error stat_path(mtf_filesystem* fs) {
    TF_FileStatistics found = {};
    Error error(mtf_stat_path(fs, first(), reinterpret_cast<char*>(&found)));
    reply_.numbers[0] = found.length;
    reply_.numbers[1] = found.mtime_nsec;
    reply_.numbers[2] = found.is_directory ? 1 : 0;
    return error;
  }

  Error is_directory(mtf_filesystem* fs) {
    int is = 0;
    Error error(mtf_is_directory(fs, first(), &is));
    reply_.numbers[0] = is;
    return error;
  }

  Error list(mtf_error* (*slot)(mtf_filesystem*, const char*, mtf_strings*), mtf_filesystem* fs) {
    Error error(slot(fs, first(), &strings_));
    if (error) return error;
    reply_.numbers[0] = strings_.count;
    return answer(strings_.bytes, strings_.size);
  }

  Error translate_name(mtf_filesystem* fs) {
    char* name = nullptr;
    Error error(mtf_translate_name(fs, first(), &name));
    if (error) return error;
    const std::unique_ptr<char, void (*)(char*)> owned(name, mtf_string_free);
    return answer(name, std::strlen(name));
  }

  Error open_region(mtf_filesystem* fs) {
    mtf_region* region = nullptr;
    const char* data = nullptr;
    uint64_t length = 0;
    Error error(mtf_region_open(fs, first(), &region, &data, &length));
    if (error) return error;
    error = length > 0 ? answer_in_file(data, static_cast<size_t>(length)) : Error();
    mtf_region_release(region);
    return error;
  }

  Error open_reader(mtf_filesystem* fs) {
    mtf_reader* reader = nullptr;
    Error error(mtf_reader_open(fs, first(), &reader));
    if (!error) reply_.numbers[0] = static_cast<int64_t>(opened_ = server_.files.add(reader));
    return error;
  }

  // The look comes first: where the file is replaced meanwhile, a later look finds a difference.
  Error look_and_open_reader(mtf_filesystem* fs) {
    Error looked = stat_path(fs);
    const int64_t length = looked ? -1 : reply_.numbers[0];
    const int64_t mtime_nsec = reply_.numbers[1];
    Error error = open_reader(fs);
    reply_.numbers[1] = length;
    reply_.numbers[2] = mtime_nsec;
    return error;
  }

  Error open_writer(mtf_filesystem* fs, int append) {
    mtf_writer* writer = nullptr;
    Error error(mtf_writer_open(fs, first(), append, &writer));
    if (!error) reply_.numbers[0] = static_cast<int64_t>(opened_ = server_.files.add(writer));
    return error;
  }

  // Nobody has got what the last call opened.
  void undo() {
    const bool is_reader =
        request_.operation == kOpenReader || request_.operation == kLookAndOpenReader;
    if (is_reader) mtf_reader_release(server_.files.take_reader(opened_));
    if (request_.operation != kOpenWriter && request_.operation != kOpenAppender) return;
    if (mtf_writer* writer = server_.files.take_writer(opened_)) discard(writer);
  }

  Error no_file() {
    return mtf::make_error(TF_INVALID_ARGUMENT, "there is no such open file in the worker");
  }

  Error on_reader() {
    if (request_.operation == kReleaseReader) {
      mtf_reader_release(server_.files.take_reader(request_.file));
      return nullptr;
    }
    mtf_reader* reader = server_.files.reader(request_.file);
    if (reader == nullptr) return no_file();
    const auto wanted = static_cast<size_t>(request_.size);
    const bool is_small = wanted <= kInline;
    if (!is_small && wanted > area_size_) return no_file();
    keep_freed_memory(wanted);
    int64_t count = 0;
    Error error(mtf_reader_read(reader, request_.offset, is_small ? line_.beside : area_, wanted, &count));
    reply_.size = static_cast<uint64_t>(count);
    reply_.place = is_small ? kBeside : kInArea;
    return error;
  }

  Error on_writer() {
    if (request_.operation == kReleaseWriter) {
      if (mtf_writer* writer = server_.files.take_writer(request_.file)) discard(writer);
      return nullptr;
    }
    mtf_writer* writer = server_.files.writer(request_.file);
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

  Error on_settings(mtf_filesystem* fs) {
    std::string bytes;
    Error error = server_.settings.perform(fs, request_, payload(), reply_, bytes);
    return error ? std::move(error) : answer(bytes.data(), bytes.size());
  }

  Server& server_;
  mtf::CallingThread calling_;  // made and used by one thread
  const unsigned forks_ = mtf::fork_generation();
  uint64_t opened_ = 0;  // by the last call
  mtf_strings strings_ = {};
};

struct Start {
  Server* server;
  int socket;
  mtf::Line* line;
};

void* run_channel(void* argument) {
  const std::unique_ptr<Start> start(static_cast<Start*>(argument));
  const auto channel = std::make_unique<ChannelServer>(*start->server, start->socket, *start->line);
  channel->serve();
  return nullptr;
}

// Takes a channel that the host sends; false where there are no more.
bool take_channel(Server* server, int control) {
  char byte;
  iovec part = {&byte, 1};
  alignas(cmsghdr) char ancillary[CMSG_SPACE(2 * sizeof(int))];
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  const ssize_t got = recvmsg(control, &message, MSG_CMSG_CLOEXEC);
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) return false;
  int files[2];
  if (!mtf::take_descriptors(message, files, 2)) return true;  // the host sees the end of the channel
  void* line = mmap(nullptr, sizeof(mtf::Line), PROT_READ | PROT_WRITE, MAP_SHARED, files[1], 0);
  close(files[1]);
  auto start = std::make_unique<Start>(Start{server, files[0], static_cast<mtf::Line*>(line)});
  pthread_t thread;
  if (line != MAP_FAILED && pthread_create(&thread, nullptr, run_channel, start.get()) == 0) {
    start.release();
    pthread_detach(thread);
    return true;
  }
  if (line != MAP_FAILED) munmap(line, sizeof(mtf::Line));
  close(files[0]);  // the host sees the end of the channel
  return true;
}

}  // namespace

extern "C" mtf_error* mtf_worker_serve(int control, mtf_filesystem** filesystems, uint32_t count) {
  // Never freed: threads that hang in the plugin may still use it when this returns.
  auto* server = new Server{filesystems, count, {}, {}};
  while (take_channel(server, control)) {
  }
  return nullptr;
}
