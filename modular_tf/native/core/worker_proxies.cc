// The functions in the tables of a filesystem whose plugin runs in a worker, and of its open files.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "copied_text.h"
#include "filesystem_state.h"
#include "worker_call.h"
#include "worker_options.h"

using mtf::Slot;
using mtf::SlotInfo;
using mtf::SlotValues;
using mtf::WorkerCall;
using namespace mtf::wire;

namespace {

constexpr uint64_t kMostOfNames = uint64_t{1} << 30;
constexpr uint64_t kMostOfAName = uint64_t{16} << 20;

// What is behind TF_Filesystem.plugin_filesystem.
struct RemoteFilesystem {
  mtf_worker* worker;
  uint32_t index;
  bool stats_on_open;  // of files for reading: the filesystem is local, and they can be opened again after a crash
};

const RemoteFilesystem& remote(const TF_Filesystem* filesystem) {
  return *static_cast<const RemoteFilesystem*>(filesystem->plugin_filesystem);
}

Request request_of(uint32_t operation, uint32_t filesystem) {
  Request request = {};
  request.operation = operation;
  request.filesystem = filesystem;
  return request;
}

// A call with a path; `take` gets the reply of one that succeeded.
template <class Take>
void call_on(const TF_Filesystem* filesystem, uint32_t operation, const char* path, TF_Status* status,
             Take&& take) {
  WorkerCall call(remote(filesystem).worker, status);
  if (!call || !call.texts(path, nullptr)) return;
  if (call.perform(request_of(operation, remote(filesystem).index))) take(call);
}

// -- slots that are called as their types say -------------------------------------------------------------

// A token is no address here, but which transaction of which process it is, so that it never means one of
// another process.
constexpr unsigned kNumberBits = 32;
static_assert(sizeof(void*) == sizeof(uint64_t), "both fit into it");

int64_t run_of(const TF_TransactionToken* token) {
  return static_cast<int64_t>(reinterpret_cast<uint64_t>(token) >> kNumberBits);
}

uint64_t number_of(const TF_TransactionToken* token) {
  return reinterpret_cast<uint64_t>(token) & UINT32_MAX;
}

// The call of a slot, in the process that has the transaction, if there is one.
class SlotCall : public WorkerCall {
 public:
  SlotCall(const TF_Filesystem* filesystem, Slot slot, SlotValues& values, TF_Status* status)
      : WorkerCall(remote(filesystem).worker, status, run_of(values.token)),
        info_(mtf::info_of(slot)),
        values_(values),
        status_(status) {
    if (*this) perform(remote(filesystem), slot);
    if (status->mark != mtf::kFileLost) return;
    mtf_status_set(status, TF_UNAVAILABLE, "the process of the plugin that had this transaction has ended, and "
                                           "what was done in it may be lost; start another one");
    status->mark = mtf::kFileLost;
  }

  bool is_ok() const { return status_->code == TF_OK; }

  int names(char*** entries) {
    bool mapped = false;
    const char* bytes = map(kMostOfNames, &mapped);
    if (bytes == nullptr) return -1;
    const auto size = static_cast<size_t>(reply().size);
    const int count = mtf::split_names(bytes, size, values_.numbers[0], entries);
    if (mapped) munmap(const_cast<char*>(bytes), size);
    if (count < 0) reject_reply("names that are incomplete, or too many");
    return count;
  }

  char* text() { return copy_payload(kMostOfAName); }

  TF_TransactionToken* token() {
    const int64_t number = values_.numbers[0];
    if (number < 1 || number > UINT32_MAX) {
      reject_reply("a transaction without a number");
      return nullptr;
    }
    const uint64_t made = static_cast<uint64_t>(run()) << kNumberBits | static_cast<uint64_t>(number);
    return reinterpret_cast<TF_TransactionToken*>(made);
  }

  TF_Filesystem_Option* options() {
    // A copy, which the worker does not change.
    const std::unique_ptr<char, void (*)(void*)> bytes(copy_payload(mtf::kMostOfOptions), std::free);
    mtf::OwnedOptions made;
    if (bytes == nullptr) return nullptr;
    const int64_t count = info_.counts_options ? values_.numbers[0] : 1;
    if (!mtf::read_options(bytes.get(), static_cast<size_t>(reply().size), count, made)) {
      reject_reply("options that are incomplete, or too many");
      return nullptr;
    }
    values_.option_count = made.count;
    return reinterpret_cast<TF_Filesystem_Option*>(std::exchange(made.options, nullptr));
  }

 private:
  void perform(const RemoteFilesystem& there, Slot slot) try {
    std::string options;
    if (info_.takes_options) {
      if (!mtf::write_options(values_.options, values_.option_count, options)) {
        return mtf_status_set(status_, TF_INVALID_ARGUMENT, mtf::kTooManyOptions);
      }
      if (!bytes(options.data(), options.size())) return;
    } else if (info_.text_count > 0) {
      const char* const first = values_.texts[0];
      const bool is_path = info_.texts != mtf::Texts::kNoPaths;
      if (!(is_path ? texts(first, values_.texts[1]) : bytes(first, std::strlen(first) + 1))) return;
    }
    Request request = request_of(operation_of(slot), there.index);
    request.file = number_of(values_.token);
    request.count = static_cast<uint32_t>(values_.option_count);
    WorkerCall::perform(request);
    if (is_answered()) std::memcpy(values_.numbers, reply().numbers, sizeof values_.numbers);  // also by an error
    if (slot == Slot::stat && is_ok()) {
      const mtf::LockGuard lock(there.worker->lock);
      there.worker->seen.keep(values_.texts[0], {values_.numbers[0], values_.numbers[1]});
    }
  } catch (const std::bad_alloc&) {  // ours, and no exception of the plugin's
    mtf_status_set(status_, TF_RESOURCE_EXHAUSTED, "no memory for options");
  }

  const SlotInfo& info_;
  SlotValues& values_;
  TF_Status* status_;
};

// -- open files -------------------------------------------------------------------------------------------

// A file that is open in a process of the worker.
struct OpenThere {
  uint64_t number;
  int64_t run;  // which process
};

// What is behind the handle of an open file.
struct RemoteFile {
  explicit RemoteFile(const RemoteFilesystem& there)
      : worker(there.worker), filesystem(there.index), is_local(there.stats_on_open) {
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

 private:
  mtf::Lock lock_;
  OpenThere there_ = {};
};

Request request_about(uint32_t operation, const RemoteFile& file, const OpenThere& there) {
  Request request = request_of(operation, file.filesystem);
  request.file = there.number;
  return request;
}

// A call about an open file.
class FileCall : public WorkerCall {
 public:
  FileCall(RemoteFile& file, TF_Status* status) : FileCall(file, file.there(), status) {}
  bool perform(uint32_t operation) { return WorkerCall::perform(request_about(operation, file_, there_)); }

 private:
  FileCall(RemoteFile& file, const OpenThere& there, TF_Status* status)
      : WorkerCall(file.worker, status, there.run), file_(file), there_(there) {}

  RemoteFile& file_;
  const OpenThere there_;
};

// What is made before the plugin is called, so that nothing is open there that nobody has. Where there is no
// memory for it that is no fault of the plugin's, as an exception in its slot would be.
template <class Object, class... Arguments>
std::unique_ptr<Object> new_object(TF_Status* status, Arguments&&... arguments) {
  std::unique_ptr<Object> made(new (std::nothrow) Object(std::forward<Arguments>(arguments)...));
  if (made == nullptr) mtf_status_set(status, TF_RESOURCE_EXHAUSTED, "no memory for a file");
  return made;
}

template <uint32_t operation>
void open_writer(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* handle,
                 TF_Status* status) {
  auto made = new_object<RemoteFile>(status, remote(filesystem));
  if (made == nullptr) return;
  call_on(filesystem, operation, path, status, [&](WorkerCall& call) {
    made->take(call);
    handle->plugin_file = made.release();
  });
}

void open_reader(const TF_Filesystem* filesystem, const char* path, TF_RandomAccessFile* handle,
                 TF_Status* status) {
  const RemoteFilesystem& there = remote(filesystem);
  const uint32_t operation =
      there.stats_on_open ? uint32_t{kStatAndOpenReader} : operation_of(Slot::new_random_access_file);
  auto made = new_object<RemoteFile>(status, there);
  if (made == nullptr) return;
  made->path.reset(mtf_copied_text(path));
  if (made->path == nullptr) return mtf_status_set(status, TF_RESOURCE_EXHAUSTED, "no memory for a path");
  call_on(filesystem, operation, path, status, [&](WorkerCall& call) {
    made->take(call);
    const auto& numbers = call.reply().numbers;
    if (there.stats_on_open) {
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
  OpenThere other;
  bool is_same;
  {
    WorkerCall call(file.worker, status);
    if (!call || call.run() == file.there().run) return static_cast<bool>(call);  // by another thread
    if (!call.texts(file.path.get(), nullptr)) return false;
    if (!call.perform(request_of(kStatAndOpenReader, file.filesystem))) return false;
    const auto& numbers = call.reply().numbers;
    is_same = mtf::SeenFile{numbers[1], numbers[2]} == file.seen;
    if (is_same && file.take(call)) return true;
    other = {static_cast<uint64_t>(numbers[0]), call.run()};
  }
  // In that process alone: in another one the number may be that of another file.
  WorkerCall release(file.worker, status, other.run);
  const bool is_released = release && release.perform(request_about(kReleaseReader, file, other));
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
template <uint32_t operation, class Handle>
void release_file(Handle* handle, TF_Status* status) {
  auto* file = static_cast<RemoteFile*>(handle->plugin_file);
  {
    FileCall call(*file, status);
    if (call) call.perform(operation);
  }
  if (!was_interrupted(status)) mtf_status_clear(status);
  delete file;
}

// Reads a part, of which nothing is left out where the status is OK; the host asks for the rest.
int64_t read_part(RemoteFile& file, uint64_t offset, size_t wanted, char* buffer, TF_Status* status) {
  const OpenThere there = file.there();
  WorkerCall call(file.worker, status, there.run);
  Request request = request_about(kRead, file, there);
  request.offset = offset;
  request.size = std::min(wanted, file.is_local ? kMostLocal : kMostArea);
  if (!call || !call.room(request.size) || !call.perform(request)) return 0;
  const auto got = static_cast<size_t>(call.reply().size);
  if (got > request.size || call.reply().place == kInFile) {
    call.reject_reply("more bytes than were asked for");
    return 0;
  }
  std::memcpy(buffer, call.payload(), got);
  if (got < request.size) mtf_status_set(status, TF_OUT_OF_RANGE, "");
  return static_cast<int64_t>(got);
}

int64_t read(const TF_RandomAccessFile* handle, uint64_t offset, size_t size, char* buffer,
             TF_Status* status) {
  RemoteFile& file = file_of(handle->plugin_file);
  const int64_t got = read_part(file, offset, size, buffer, status);
  if (status->mark != mtf::kFileLost || mtf::is_interrupted()) return got;
  mtf_status_clear(status);
  return reopen(file, status) ? read_part(file, offset, size, buffer, status) : 0;
}

template <uint32_t operation>
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
  call_on(filesystem, operation_of(Slot::new_read_only_memory_region_from_file), path, status, [&](WorkerCall& call) {
    const Reply& reply = call.reply();
    bool mapped = false;
    const char* data = call.map(UINT64_MAX, &mapped);
    if (data == nullptr) return;
    if (!mapped && reply.size > 0) {
      call.reject_reply("a memory region without memory");
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

// -- the tables -------------------------------------------------------------------------------------------

bool paths_exist(const TF_Filesystem* filesystem, char** paths, int count, TF_Status** statuses) {
  bool all = true;
  for (int i = 0; i < count && (i == 0 || statuses[i - 1]->mark != mtf::kInterrupted); ++i) {
    bool exists = false;
    call_on(filesystem, operation_of(Slot::paths_exist), paths[i], statuses[i],
            [&](WorkerCall& call) { exists = call.reply().numbers[0] != 0; });
    all = exists && all;
  }
  return all;
}

void init(TF_Filesystem*, TF_Status*) {}  // mtf_filesystem_new_in_worker has set the handle

void cleanup(TF_Filesystem* filesystem) {
  auto* there = static_cast<RemoteFilesystem*>(filesystem->plugin_filesystem);
  there->worker->release();
  delete there;
}

// The functions of slots whose rows say kFile.
template <Slot slot>
constexpr void* kFileFunction = nullptr;  // is none
template <>
constexpr auto kFileFunction<Slot::new_random_access_file> = open_reader;
template <>
constexpr auto kFileFunction<Slot::new_writable_file> = open_writer<operation_of(Slot::new_writable_file)>;
template <>
constexpr auto kFileFunction<Slot::new_appendable_file> = open_writer<operation_of(Slot::new_appendable_file)>;
template <>
constexpr auto kFileFunction<Slot::new_read_only_memory_region_from_file> = open_region;
template <>
constexpr auto kFileFunction<Slot::paths_exist> = paths_exist;

// A slot of ours where the plugin has one.
template <class Function>
void put(Function& ours, const Function& theirs, Function function) {
  ours = theirs != nullptr ? function : nullptr;
}

}  // namespace

extern "C" mtf_error* mtf_filesystem_new_in_worker(const void* tables, const mtf_plugin* plugin,
                                                   mtf_worker* worker, uint32_t index, int stats_on_open,
                                                   mtf_filesystem** filesystem) {
  auto made = std::make_unique<mtf_filesystem>(tables, plugin);
  made->handle.plugin_filesystem = new RemoteFilesystem{worker, index, stats_on_open != 0};
  made->in_worker = true;
  worker->retain();
  *filesystem = made.release();
  return nullptr;
}

extern "C" size_t mtf_worker_tables_size(void) { return sizeof(mtf::Tables); }

extern "C" void mtf_worker_tables(const void* slots, void* tables) {
  const auto& theirs = *static_cast<const mtf::Tables*>(slots);
  auto& ours = *static_cast<mtf::Tables*>(tables);
  ours = {};
  ours.filesystem.init = init;
  ours.filesystem.cleanup = cleanup;
#define MTF_FUNCTION_kCalled(slot) mtf::slot_function<SlotCall, Slot::slot>()
#define MTF_FUNCTION_kFile(slot) kFileFunction<Slot::slot>
#define MTF_FUNCTION_kNone(slot) nullptr
#define MTF_SLOT(slot, texts, missing, worker, tensorflow) \
  put<decltype(ours.filesystem.slot)>(ours.filesystem.slot, theirs.filesystem.slot, MTF_FUNCTION_##worker(slot));
#include "filesystem_slots.def"
  // The worker has a text where the plugin has none.
  ours.filesystem.decode_transaction_token = mtf::slot_function<SlotCall, Slot::decode_transaction_token>();
  ours.reader.cleanup = mtf::as_function<decltype(ours.reader.cleanup)>(release_file<kReleaseReader, TF_RandomAccessFile>);
  put(ours.reader.read, theirs.reader.read, read);
  ours.writer.cleanup = mtf::as_function<decltype(ours.writer.cleanup)>(release_file<kReleaseWriter, TF_WritableFile>);
  put(ours.writer.append, theirs.writer.append, append);
  put(ours.writer.tell, theirs.writer.tell, tell);
  put(ours.writer.flush, theirs.writer.flush, on_writer<kFlush>);
  put(ours.writer.sync, theirs.writer.sync, on_writer<kSync>);
  put(ours.writer.close, theirs.writer.close, on_writer<kCloseWriter>);
  put(ours.region.cleanup, theirs.region.cleanup, release_region);
  put(ours.region.data, theirs.region.data, region_data);
  put(ours.region.length, theirs.region.length, region_length);
  ours.plugin_allocate = std::malloc;
  ours.plugin_free = std::free;
}
