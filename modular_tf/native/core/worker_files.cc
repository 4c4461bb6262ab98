// The functions that stand in the tables of open files whose plugin runs in a worker.
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "copied_text.h"
#include "worker_proxies.h"

using mtf::call_on;
using mtf::put;
using mtf::remote;
using mtf::request_of;
using mtf::WorkerCall;
using namespace mtf::wire;

namespace {

// A file that is open in a process of the worker.
struct OpenThere {
  uint64_t number;
  int64_t run;  // which process
};

// What is behind the handle of an open file.
struct RemoteFile {
  explicit RemoteFile(const mtf::RemoteFilesystem& there)
      : worker(there.worker), filesystem(there.index), is_local(there.looks) {
    worker->retain();
  }
  ~RemoteFile() { worker->release(); }
  RemoteFile(const RemoteFile&) = delete;
  RemoteFile& operator=(const RemoteFile&) = delete;

  // Notes what a call has opened, unless it is open in that process.
  bool take(const WorkerCall& call) {
    const mtf::LockGuard lock(lock_);
    if (there_.run == call.run()) return false;
    there_ = {static_cast<uint64_t>(call.reply().numbers[0]), call.run()};
    return true;
  }
  OpenThere there() {
    const mtf::LockGuard lock(lock_);
    return there_;
  }

  mtf_worker* const worker;
  const uint32_t filesystem;
  const bool is_local;
  // Of a file that is open for reading, so that another process can open it again.
  std::unique_ptr<char, void (*)(void*)> path{nullptr, std::free};
  std::atomic<bool> is_seen{false};
  mtf::SeenFile seen = {};

  // How many of as many bytes from here on it had when it was looked at; none where nobody has looked.
  size_t known_bytes(uint64_t offset, size_t wanted) const {
    const auto length = static_cast<uint64_t>(is_seen && seen.length > 0 ? seen.length : 0);
    const uint64_t left = length > offset ? length - offset : 0;
    return left < wanted ? static_cast<size_t>(left) : wanted;
  }

 private:
  mtf::Lock lock_;
  OpenThere there_ = {};
};

Request request_about(Operation operation, const RemoteFile& file, const OpenThere& there) {
  Request request = request_of(operation, file.filesystem);
  request.file = there.number;
  return request;
}

// A call about an open file.
class FileCall : public WorkerCall {
 public:
  FileCall(RemoteFile& file, TF_Status* status) : FileCall(file, file.there(), status) {}
  bool perform(Operation operation) { return WorkerCall::perform(request_about(operation, file_, there_)); }

 private:
  FileCall(RemoteFile& file, const OpenThere& there, TF_Status* status)
      : WorkerCall(file.worker, status, there.run), file_(file), there_(there) {}

  RemoteFile& file_;
  const OpenThere there_;
};

// -- open files -----------------------------------------------------------------------------------

// What is made before the plugin is called, so that nothing is open there that nobody has. Where there is no
// memory for it that is no fault of the plugin's, as an exception in its slot would be.
template <class Object, class... Arguments>
std::unique_ptr<Object> new_object(TF_Status* status, Arguments&&... arguments) {
  std::unique_ptr<Object> made(new (std::nothrow) Object(std::forward<Arguments>(arguments)...));
  if (made == nullptr) mtf_status_set(status, TF_RESOURCE_EXHAUSTED, "no memory for a file");
  return made;
}

template <Operation operation>
void open_writer(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* handle,
                 TF_Status* status) {
  auto made = new_object<RemoteFile>(status, remote(filesystem));
  if (made == nullptr) return;
  call_on(filesystem, operation, path, nullptr, status, [&](WorkerCall& call) {
    made->take(call);
    handle->plugin_file = made.release();
  });
}

void open_reader(const TF_Filesystem* filesystem, const char* path, TF_RandomAccessFile* handle,
                 TF_Status* status) {
  const mtf::RemoteFilesystem& there = remote(filesystem);
  const Operation operation = there.looks ? kLookAndOpenReader : kOpenReader;
  auto made = new_object<RemoteFile>(status, there);
  if (made == nullptr) return;
  made->path.reset(mtf_copied_text(path));
  if (made->path == nullptr) return mtf_status_set(status, TF_RESOURCE_EXHAUSTED, "no memory for a path");
  call_on(filesystem, operation, path, nullptr, status, [&](WorkerCall& call) {
    made->take(call);
    const auto& numbers = call.reply().numbers;
    if (there.looks) {
      made->is_seen = numbers[1] >= 0;
      made->seen = {numbers[1], numbers[2]};
    } else {
      const mtf::LockGuard lock(there.worker->lock);
      made->is_seen = there.worker->seen.find(path, &made->seen);
    }
    handle->plugin_file = made.release();
  });
}

void file_lost(TF_Status* status, const char* why) {
  mtf_status_set(status, TF_UNAVAILABLE, why);
  status->mark = mtf::kFileLost;
}

// Whether a signal handler raised in a call that failed, be it while the end of the process was looked
// into. The status says so then.
bool was_interrupted(TF_Status* status) {
  if (status->code == TF_OK || !mtf::is_interrupted()) return false;
  status->mark = mtf::kInterrupted;
  return true;
}

// Opens a file in the process of now, if it is the one that was opened in a process that has ended.
// Several threads may, and a signal handler in the middle of it: the first one to have it open wins, and no
// lock is held meanwhile.
bool reopen(RemoteFile& file, TF_Status* status) {
  if (!file.is_seen) {
    file_lost(status, "the process of the plugin that had this file open has ended, and it is not known "
                      "whether the file is still the same; open it again");
    return false;
  }
  WorkerCall call(file.worker, status);
  if (!call || call.run() == file.there().run) return static_cast<bool>(call);  // by another thread
  if (!call.texts(file.path.get(), nullptr)) return false;
  if (!call.perform(request_of(kLookAndOpenReader, file.filesystem))) return false;
  const auto& numbers = call.reply().numbers;
  const bool is_same = mtf::SeenFile{numbers[1], numbers[2]} == file.seen;
  if (is_same && file.take(call)) return true;
  const OpenThere other = {static_cast<uint64_t>(numbers[0]), call.run()};
  // In that process alone: in another one the number may be that of another file.
  const bool is_released = call.begin(request_about(kReleaseReader, file, other)) && call.finish();
  if (!is_released && was_interrupted(status)) return false;
  mtf_status_clear(status);
  if (!is_same) {
    file.is_seen = false;
    file_lost(status, "the process of the plugin that had this file open has ended, and the file has "
                      "changed since; open it again");
  }
  return is_same;
}

RemoteFile& file_of(void* plugin_file) { return *static_cast<RemoteFile*>(plugin_file); }

// Where the call cannot be made or fails, the file is gone all the same.
template <Operation operation, class Handle>
void release_file(Handle* handle, TF_Status* status) {
  auto* file = static_cast<RemoteFile*>(handle->plugin_file);
  {
    FileCall call(*file, status);
    if (call) call.perform(operation);
  }
  if (!was_interrupted(status)) mtf_status_clear(status);
  delete file;
}

Request read_request(const RemoteFile& file, const OpenThere& there, uint64_t offset,
                     size_t wanted) {
  Request request = request_about(kRead, file, there);
  request.offset = offset;
  request.size = wanted;
  return request;
}

// Copies what a read gave; -1 for a reply that is none.
int64_t copy_read(WorkerCall& call, size_t wanted, char* buffer, TF_Status* status) {
  const auto got = static_cast<size_t>(call.reply().size);
  if (got > wanted || call.reply().place == kInFile) {
    call.disbelieve("more bytes than were asked for");
    return -1;
  }
  std::memcpy(buffer, call.payload(), got);
  if (got < wanted) mtf_status_set(status, TF_OUT_OF_RANGE, "");
  return static_cast<int64_t>(got);
}

// Reads in blocks through two channels: one block is copied while the worker reads the next. Each
// area stays in the caches of the processor, and is small.
int64_t read_blocks(RemoteFile& file, uint64_t offset, size_t wanted, char* buffer, TF_Status* status) {
  const OpenThere there = file.there();
  WorkerCall first(file.worker, status, there.run);
  if (!first) return 0;
  WorkerCall second(file.worker, status, there.run, false);
  if (!second) mtf_status_clear(status);  // it is only faster with two, and `first` tells of an end
  WorkerCall* const calls[] = {&first, second ? &second : &first};
  size_t asked = 0;
  size_t done = 0;
  size_t answered = 0;
  const auto ask = [&](WorkerCall& call) {
    const size_t size = wanted - asked < kBlock ? wanted - asked : kBlock;
    const uint64_t place = offset + asked;
    asked += size;
    return call.room(size) && call.begin(read_request(file, there, place, size));
  };
  if (!ask(first)) return 0;
  for (int turn = 0; done < asked; ++turn) {
    WorkerCall& call = *calls[turn % 2];
    WorkerCall& other = *calls[(turn + 1) % 2];
    const bool is_alone = &call == &other;
    if (!is_alone && asked < wanted && !ask(other)) return 0;
    const size_t size = wanted - done < kBlock ? wanted - done : kBlock;
    if (!call.finish()) return 0;
    answered += size;
    const int64_t got = copy_read(call, size, buffer + done, status);
    if (got < 0) return 0;
    done += static_cast<size_t>(got);
    if (status->code != TF_OK) {  // the end of the file
      TF_Status rest = {};
      std::swap(rest, *status);
      if (answered < asked) other.finish();
      if (!was_interrupted(status)) std::swap(rest, *status);
      mtf_status_clear(&rest);
      return static_cast<int64_t>(done);
    }
    if (is_alone && asked < wanted && !ask(call)) return 0;
  }
  return static_cast<int64_t>(done);
}

int64_t read_once(RemoteFile& file, uint64_t offset, size_t wanted, char* buffer,
                  TF_Status* status) {
  if (file.is_local && wanted > 2 * kBlock) return read_blocks(file, offset, wanted, buffer, status);
  const OpenThere there = file.there();
  WorkerCall call(file.worker, status, there.run);
  const size_t size = wanted < kMostArea ? wanted : kMostArea;
  if (!call || !call.room(size) || !call.begin(read_request(file, there, offset, size))) return 0;
  if (!file.is_local) call.bring_room(file.known_bytes(offset, size));  // a store takes longer to answer
  if (!call.finish()) return 0;
  const int64_t got = copy_read(call, size, buffer, status);
  return got < 0 ? 0 : got;
}

int64_t read(const TF_RandomAccessFile* handle, uint64_t offset, size_t size, char* buffer,
             TF_Status* status) {
  RemoteFile& file = file_of(handle->plugin_file);
  const int64_t got = read_once(file, offset, size, buffer, status);
  if (status->mark != mtf::kFileLost || mtf::is_interrupted()) return got;
  mtf_status_clear(status);
  return reopen(file, status) ? read_once(file, offset, size, buffer, status) : 0;
}

template <Operation operation>
void on_writer(const TF_WritableFile* handle, TF_Status* status) {
  RemoteFile& file = file_of(handle->plugin_file);
  FileCall call(file, status);
  if (call) call.perform(operation);
}

void append(const TF_WritableFile* handle, const char* data, size_t size, TF_Status* status) {
  RemoteFile& file = file_of(handle->plugin_file);
  FileCall call(file, status);
  if (call && call.bytes(data, size)) call.perform(kAppend);
}

int64_t tell(const TF_WritableFile* handle, TF_Status* status) {
  RemoteFile& file = file_of(handle->plugin_file);
  FileCall call(file, status);
  return call && call.perform(kTell) ? call.reply().numbers[0] : -1;
}

// -- memory regions -------------------------------------------------------------------------------

// Sealed memory of the worker's, mapped here.
struct RemoteRegion {
  const char* data = nullptr;
  uint64_t length = 0;
};

void open_region(const TF_Filesystem* filesystem, const char* path, TF_ReadOnlyMemoryRegion* handle,
                 TF_Status* status) {
  auto made = new_object<RemoteRegion>(status);
  if (made == nullptr) return;
  call_on(filesystem, kOpenRegion, path, nullptr, status, [&](WorkerCall& call) {
    const Reply& reply = call.reply();
    bool mapped = false;
    const char* data = call.map(UINT64_MAX, &mapped);
    if (data == nullptr) return;
    if (!mapped && reply.size > 0) {
      call.disbelieve("a memory region without memory");
      return;
    }
    if (mapped) {
      made->data = data;
      made->length = reply.size;
    }
    handle->plugin_memory_region = made.release();
  });
}

const RemoteRegion& region_of(const TF_ReadOnlyMemoryRegion* handle) {
  return *static_cast<const RemoteRegion*>(handle->plugin_memory_region);
}

const void* region_data(const TF_ReadOnlyMemoryRegion* handle) { return region_of(handle).data; }
uint64_t region_length(const TF_ReadOnlyMemoryRegion* handle) { return region_of(handle).length; }

void release_region(TF_ReadOnlyMemoryRegion* handle) {
  auto* region = static_cast<RemoteRegion*>(handle->plugin_memory_region);
  if (region->data != nullptr) munmap(const_cast<char*>(region->data), region->length);
  delete region;
}

}  // namespace

void mtf::release_in_worker(TF_RandomAccessFile* file, TF_Status* status) {
  release_file<kReleaseReader>(file, status);
}

void mtf::release_in_worker(TF_WritableFile* file, TF_Status* status) {
  release_file<kReleaseWriter>(file, status);
}

void mtf::put_file_functions(const Tables& theirs, Tables& ours) {
  const TF_FilesystemOps& fs = theirs.filesystem;
  TF_FilesystemOps& made = ours.filesystem;
  put(made.new_random_access_file, fs.new_random_access_file, open_reader);
  put(made.new_writable_file, fs.new_writable_file, open_writer<kOpenWriter>);
  put(made.new_appendable_file, fs.new_appendable_file, open_writer<kOpenAppender>);
  put(made.new_read_only_memory_region_from_file, fs.new_read_only_memory_region_from_file,
      open_region);
  put(ours.reader.read, theirs.reader.read, read);
  put(ours.writer.append, theirs.writer.append, append);
  put(ours.writer.tell, theirs.writer.tell, tell);
  put(ours.writer.flush, theirs.writer.flush, on_writer<kFlush>);
  put(ours.writer.sync, theirs.writer.sync, on_writer<kSync>);
  put(ours.writer.close, theirs.writer.close, on_writer<kCloseWriter>);
  put(ours.region.cleanup, theirs.region.cleanup, release_region);
  put(ours.region.data, theirs.region.data, region_data);
  put(ours.region.length, theirs.region.length, region_length);
}
