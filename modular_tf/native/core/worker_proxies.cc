// The functions that stand in the table of a filesystem whose plugin runs in a worker.
#include "worker_proxies.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

using mtf::call_on;
using mtf::put;
using mtf::remote;
using mtf::request_of;
using mtf::WorkerCall;
using namespace mtf::wire;

namespace {

// Of a listing. Copies of names take memory of this process, also of those that are empty.
constexpr uint64_t kMostOfNames = uint64_t{1} << 30;
constexpr int64_t kMostNames = int64_t{1} << 24;

// -- paths ----------------------------------------------------------------------------------------

template <Operation operation>
void on_path(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  call_on(filesystem, operation, path, nullptr, status, [](WorkerCall&) {});
}

template <Operation operation>
void on_two_paths(const TF_Filesystem* filesystem, const char* source, const char* target,
                  TF_Status* status) {
  call_on(filesystem, operation, source, target, status, [](WorkerCall&) {});
}

void delete_recursively(const TF_Filesystem* filesystem, const char* path, uint64_t* undeleted_files,
                        uint64_t* undeleted_dirs, TF_Status* status) {
  const mtf::RemoteFilesystem& there = remote(filesystem);
  WorkerCall call(there.worker, status);
  if (!call || !call.texts(path, nullptr)) return;
  call.perform(request_of(kDeleteRecursively, there.index));
  if (call.is_answered()) {  // also by an error
    *undeleted_files = static_cast<uint64_t>(call.reply().numbers[0]);
    *undeleted_dirs = static_cast<uint64_t>(call.reply().numbers[1]);
  }
}

bool paths_exist(const TF_Filesystem* filesystem, char** paths, int count, TF_Status** statuses) {
  const mtf::RemoteFilesystem& there = remote(filesystem);
  bool all = true;
  for (int i = 0; i < count && (i == 0 || statuses[i - 1]->mark != mtf::kInterrupted); ++i) {
    WorkerCall call(there.worker, statuses[i]);
    const bool is_told = call && call.texts(paths[i], nullptr) &&
                         call.perform(request_of(kPathsExist, there.index));
    all = is_told && call.reply().numbers[0] != 0 && all;
  }
  return all;
}

void stat_path(const TF_Filesystem* filesystem, const char* path, TF_FileStatistics* statistics,
               TF_Status* status) {
  call_on(filesystem, kStat, path, nullptr, status, [&](WorkerCall& call) {
    const auto& numbers = call.reply().numbers;
    statistics->length = numbers[0];
    statistics->mtime_nsec = numbers[1];
    statistics->is_directory = numbers[2] != 0;
    mtf_worker& worker = *remote(filesystem).worker;
    const mtf::LockGuard lock(worker.lock);
    worker.seen.keep(path, {numbers[0], numbers[1]});
  });
}

bool is_directory(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  bool is = false;
  call_on(filesystem, kIsDirectory, path, nullptr, status,
          [&](WorkerCall& call) { is = call.reply().numbers[0] != 0; });
  return is;
}

int64_t get_file_size(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  int64_t size = -1;
  call_on(filesystem, kGetFileSize, path, nullptr, status,
          [&](WorkerCall& call) { size = call.reply().numbers[0]; });
  return size;
}

char* translate_name(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  char* name = nullptr;
  call_on(filesystem, kTranslateName, path, nullptr, status,
          [&](WorkerCall& call) { name = call.copy_payload(kMostOfNames); });
  return name;
}

void flush_caches(const TF_Filesystem* filesystem, TF_Status* status) {
  const mtf::RemoteFilesystem& there = remote(filesystem);
  WorkerCall call(there.worker, status);
  if (call) call.perform(request_of(kFlushCaches, there.index));
}

const mtf::SlotsInWorker with_status = {translate_name, flush_caches, mtf::decode_in_worker,
                                        mtf::release_in_worker, mtf::release_in_worker, kMostAppended};

// In the table in the place of these: the plugin has the operation.
char* has_translate_name(const TF_Filesystem*, const char*) { return nullptr; }
void has_flush_caches(const TF_Filesystem*) {}

// -- lists of strings -----------------------------------------------------------------------------

struct Strings {
  char** entries = nullptr;
  int count = 0;
  ~Strings() {
    for (int i = 0; i < count; ++i) std::free(entries[i]);
    std::free(entries);
  }
};

// Copies `expected` strings, each followed by a NUL, out of bytes that the worker may change. False:
// these are not the strings that it announced, or there is no memory.
bool copy_strings(const char* bytes, size_t size, int64_t expected, Strings& made) {
  if (expected < 0 || expected > kMostNames || static_cast<uint64_t>(expected) > size) return false;
  made.entries = static_cast<char**>(std::calloc(static_cast<size_t>(expected) + 1, sizeof(char*)));
  if (made.entries == nullptr) return false;
  size_t done = 0;
  for (int64_t i = 0; i < expected; ++i) {
    const size_t length = strnlen(bytes + done, size - done);
    if (length == size - done) return false;
    char* copy = static_cast<char*>(std::malloc(length + 1));
    if (copy == nullptr) return false;
    std::memcpy(copy, bytes + done, length);
    copy[length] = '\0';
    made.entries[made.count++] = copy;
    done += length + 1;
  }
  return true;
}

template <Operation operation>
int list_strings(const TF_Filesystem* filesystem, const char* path, char*** entries,
                 TF_Status* status) {
  int count = -1;
  call_on(filesystem, operation, path, nullptr, status, [&](WorkerCall& call) {
    const Reply& reply = call.reply();
    bool mapped = false;
    const char* bytes = call.map(kMostOfNames, &mapped);
    if (bytes == nullptr) return;
    Strings made;
    const bool whole = copy_strings(bytes, static_cast<size_t>(reply.size), reply.numbers[0], made);
    if (mapped) munmap(const_cast<char*>(bytes), static_cast<size_t>(reply.size));
    if (!whole) {
      call.disbelieve("names that are incomplete, or too many");
      return;
    }
    *entries = std::exchange(made.entries, nullptr);
    count = std::exchange(made.count, 0);
  });
  return count;
}

// -- the tables -----------------------------------------------------------------------------------

void init(TF_Filesystem*, TF_Status*) {}  // mtf_filesystem_new_in_worker has set the handle

void cleanup(TF_Filesystem* filesystem) {
  auto* there = static_cast<mtf::RemoteFilesystem*>(filesystem->plugin_filesystem);
  there->worker->release();
  delete there;
}

}  // namespace

extern "C" mtf_error* mtf_filesystem_new_in_worker(const void* tables, const mtf_plugin* plugin,
                                                   mtf_worker* worker, uint32_t index, int looks,
                                                   mtf_filesystem** filesystem) {
  auto made = std::make_unique<mtf_filesystem>(tables, plugin);
  made->handle.plugin_filesystem = new mtf::RemoteFilesystem{worker, index, looks != 0};
  made->in_worker = &with_status;
  worker->retain();
  *filesystem = made.release();
  return nullptr;
}

extern "C" size_t mtf_worker_tables_size(void) { return sizeof(mtf::Tables); }

extern "C" void mtf_worker_tables(const void* slots, void* tables) {
  const auto& theirs = *static_cast<const mtf::Tables*>(slots);
  auto& ours = *static_cast<mtf::Tables*>(tables);
  const TF_FilesystemOps& fs = theirs.filesystem;
  ours = {};
  TF_FilesystemOps& made = ours.filesystem;
  made.init = init;
  made.cleanup = cleanup;
  put(made.create_dir, fs.create_dir, on_path<kCreateDir>);
  put(made.recursively_create_dir, fs.recursively_create_dir, on_path<kRecursivelyCreateDir>);
  put(made.delete_file, fs.delete_file, on_path<kDeleteFile>);
  put(made.delete_dir, fs.delete_dir, on_path<kDeleteDir>);
  put(made.delete_recursively, fs.delete_recursively, delete_recursively);
  put(made.rename_file, fs.rename_file, on_two_paths<kRenameFile>);
  put(made.copy_file, fs.copy_file, on_two_paths<kCopyFile>);
  put(made.path_exists, fs.path_exists, on_path<kPathExists>);
  put(made.paths_exist, fs.paths_exist, paths_exist);
  put(made.stat, fs.stat, stat_path);
  put(made.is_directory, fs.is_directory, is_directory);
  put(made.get_file_size, fs.get_file_size, get_file_size);
  put(made.get_children, fs.get_children, list_strings<kGetChildren>);
  put(made.get_matching_paths, fs.get_matching_paths, list_strings<kGetMatchingPaths>);
  put(made.translate_name, fs.translate_name, has_translate_name);
  put(made.flush_caches, fs.flush_caches, has_flush_caches);
  mtf::put_file_functions(theirs, ours);
  mtf::put_setting_functions(theirs, ours);
  ours.plugin_allocate = std::malloc;
  ours.plugin_free = std::free;
}
