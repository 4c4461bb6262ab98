#include "filesystem.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "filesystem_state.h"
#include "fork_lock.h"
#include "stream_guard.h"
#include "copied_text.h"
#include "worker_wire.h"

using mtf::Error;
using mtf::guarded;

extern "C" mtf_error* mtf_init_filesystem_plugin(void* entry, const mtf_plugin* plugin,
                                                 mtf_plugin_info* info) {
  static_assert(sizeof(mtf_plugin_info) == sizeof(TF_FilesystemPluginInfo), "one layout, two names");
  *info = {};
  return guarded({plugin, "TF_InitPlugin"}, [&](TF_Status*) {
    reinterpret_cast<void (*)(mtf_plugin_info*)>(entry)(info);
  });
}

extern "C" mtf_error* mtf_plugin_free(void* plugin_free, void* memory) {
  return guarded({nullptr, "plugin_memory_free"},
                 [&](TF_Status*) { reinterpret_cast<void (*)(void*)>(plugin_free)(memory); });
}

extern "C" void mtf_strings_free(mtf_strings* strings) {
  std::free(strings->bytes);
  *strings = {};
}

extern "C" void mtf_string_free(char* string) { std::free(string); }

namespace {

// -- what one init of a plugin made, for all its filesystems of the process: some plugins' cleanup ends more
// than the filesystem that it is given --

// One for each plugin that ever had one: a fork in the middle of a change to the list finds it whole.
struct SharedInit {
  void (*init)(TF_Filesystem*, TF_Status*);  // tells plugins apart
  SharedInit* next;
  TF_Filesystem handle = {};
  int users = 0;
  pid_t process = 0;  // that called init
};

mtf::Lock all;
SharedInit* first = nullptr;

SharedInit& of_plugin(const TF_FilesystemOps& table) {
  for (SharedInit* shared = first; shared != nullptr; shared = shared->next) {
    if (shared->init == table.init) return *shared;
  }
  first = new SharedInit{table.init, first};
  return *first;
}

Error call_init(SharedInit& shared, const mtf_plugin* plugin) {
  shared.handle = {};
  Error error = guarded({plugin, "init"}, [&](TF_Status* status) {
    shared.init(&shared.handle, status);
  });
  if (!error) shared.process = getpid();
  return error;
}

// Calls init unless another filesystem of the plugin is in use, and lets `handle` have what it made.
Error join_shared_init(const TF_FilesystemOps& table, const mtf_plugin* plugin,
                       TF_Filesystem* handle) {
  const mtf::LockGuard lock(all);
  SharedInit& shared = of_plugin(table);
  if (shared.users == 0) {
    if (Error error = call_init(shared, plugin)) return error;
  }
  ++shared.users;
  *handle = shared.handle;
  return nullptr;
}

// Calls cleanup after the last use.
Error leave_shared_init(const TF_FilesystemOps& table, const mtf_plugin* plugin) {
  // Held meanwhile, so that what cleanup ends is not begun anew before it has ended.
  const mtf::LockGuard lock(all);
  SharedInit& shared = of_plugin(table);
  if (--shared.users != 0) return nullptr;
  return guarded({plugin, "cleanup"}, [&](TF_Status*) { table.cleanup(&shared.handle); });
}

// In a forked child, before it has threads: the first caller calls init anew.
Error repeat_shared_init(const TF_FilesystemOps& table, const mtf_plugin* plugin,
                         TF_Filesystem* handle) {
  const mtf::LockGuard lock(all);
  SharedInit& shared = of_plugin(table);
  Error error = shared.process == getpid() ? nullptr : call_init(shared, plugin);
  *handle = shared.handle;
  return error;
}

using Init = Error (*)(const TF_FilesystemOps&, const mtf_plugin*, TF_Filesystem*);

Error init_own(const TF_FilesystemOps& table, const mtf_plugin* plugin, TF_Filesystem* handle) {
  return guarded({plugin, "init"}, [&](TF_Status* status) { table.init(handle, status); });
}

Error make_filesystem(const void* tables, const mtf_plugin* plugin, bool is_shared,
                      mtf_filesystem** filesystem) {
  auto made = std::make_unique<mtf_filesystem>(tables, plugin);
  made->is_shared = is_shared;
  const Init init = is_shared ? join_shared_init : init_own;
  Error error = init(made->tables->filesystem, plugin, &made->handle);
  if (!error) *filesystem = made.release();
  return error;
}

}  // namespace

extern "C" mtf_error* mtf_filesystem_new(const void* tables, const mtf_plugin* plugin,
                                         mtf_filesystem** filesystem) {
  return make_filesystem(tables, plugin, false, filesystem);
}

extern "C" mtf_error* mtf_filesystem_new_shared(const void* tables, const mtf_plugin* plugin,
                                                mtf_filesystem** filesystem) {
  return make_filesystem(tables, plugin, true, filesystem);
}

extern "C" mtf_error* mtf_filesystem_close(mtf_filesystem* filesystem, int now) {
  const bool ends_here = filesystem->gate.close();
  Error first;
  // Nothing can be opened any more: what is being opened right now closes itself.
  while (mtf::OpenFile* file = filesystem->take_open()) {
    Error error = file->close(now == 0);
    file->release();
    if (!first) first = std::move(error);
  }
  if (ends_here) filesystem->run_cleanup();
  if (now != 0) filesystem->clean_up_in_time();
  return first.release();
}

extern "C" void mtf_filesystem_release(mtf_filesystem* filesystem) {
  if (filesystem == nullptr) return;
  mtf::drop(Error(mtf_filesystem_close(filesystem, 0)));
  filesystem->release();
}

extern "C" mtf_error* mtf_filesystem_after_fork(mtf_filesystem* filesystem, int reinitialise) {
  filesystem->abandon_all();
  filesystem->gate.after_fork();
  filesystem->cleanup_done = filesystem->gate.has_ended();  // by the parent, soon if not yet
  // A child of a fork has a worker of its own, which calls init.
  if (filesystem->gate.is_closed() || reinitialise == 0 || filesystem->in_worker) return nullptr;
  filesystem->handle = {};
  const Init init = filesystem->is_shared ? repeat_shared_init : init_own;
  return init(filesystem->tables->filesystem, filesystem->plugin, &filesystem->handle);
}

extern "C" int mtf_filesystem_shares_store(const mtf_filesystem* filesystem,
                                           const mtf_filesystem* other) {
  const bool no_state = filesystem->handle.plugin_filesystem == nullptr &&
                        other->handle.plugin_filesystem == nullptr;
  return no_state && !other->gate.is_closed() &&
                 std::memcmp(filesystem->tables, other->tables, sizeof(mtf::Tables)) == 0
             ? 1
             : 0;
}

extern "C" int mtf_filesystem_is_in_use(const mtf_filesystem* filesystem) {
  return filesystem->gate.is_in_use() ? 1 : 0;
}

extern "C" int64_t mtf_filesystem_open_count(mtf_filesystem* filesystem) {
  const mtf::LockGuard lock(filesystem->open_lock);
  auto count = static_cast<int64_t>(filesystem->gate.pins());
  for (mtf::OpenFile* file = filesystem->open_files; file != nullptr; file = file->next) ++count;
  return count;
}

namespace mtf {

Error closed_filesystem_error() { return make_closed_error("the filesystem is closed"); }

Error missing_operation(const char* name) {
  char message[128];
  std::snprintf(message, sizeof message, "the plugin has no %s", name);
  return make_error(TF_UNIMPLEMENTED, message);
}

void OpenFile::put_on(OpenFile*& list) {
  next = list;
  link = &list;
  if (next != nullptr) next->link = &next;
  list = this;
}

void OpenFile::take_off() {
  if (link == nullptr) return;
  *link = next;
  if (next != nullptr) next->link = link;
  link = nullptr;
}

Error TranslatedPath::translate(const mtf_filesystem& filesystem, const char* path) {
  if (!filesystem.in_worker) return translate_here(filesystem, path);
  path_ = const_cast<char*>(path);
  return nullptr;
}

Error TranslatedPath::translate_here(const mtf_filesystem& filesystem, const char* path) {
  const auto translate = filesystem.tables->filesystem.translate_name;
  if (translate == nullptr) return translate_by_default(path);
  Error error = guarded({filesystem.plugin, "translate_name", path},
                        [&](TF_Status* status) {
    path_ = call_without_status(filesystem, translate, status, &filesystem.handle, path);
  });
  plugin_ = filesystem.plugin;
  plugin_free_ = filesystem.tables->plugin_free;
  if (!error && path_ == nullptr) return make_error(TF_INTERNAL, "translate_name returned NULL");
  return error;
}

// The rule for a plugin without translate_name: the path part, in normal form.
Error TranslatedPath::translate_by_default(const char* uri) {
  const size_t room = std::strlen(uri) + 2;
  on_heap_ = room > kInline;
  path_ = on_heap_ ? static_cast<char*>(std::malloc(room)) : inline_;
  if (path_ == nullptr) return make_error(TF_RESOURCE_EXHAUSTED, "no memory for a path");
  size_t scheme = 0;
  const char* path = uri + mtf_uri_path_offset(uri, &scheme);
  if (*path == '\0') {
    std::strcpy(path_, scheme > 0 ? "/" : "");
  } else {
    mtf_clean_path(path, path_);
  }
  return nullptr;
}

TranslatedPath::~TranslatedPath() {
  if (plugin_free_ != nullptr) {
    free_by_plugin(plugin_, plugin_free_, path_);
  } else if (on_heap_) {
    std::free(path_);
  }
}

}  // namespace mtf

void mtf_filesystem::leave() {
  if (gate.leave()) run_cleanup();
}

void mtf_filesystem::run_cleanup() {
  mtf::drop(is_shared ? leave_shared_init(tables->filesystem, plugin)
                      : mtf::guarded({plugin, "cleanup"}, [&](TF_Status*) {
                          tables->filesystem.cleanup(&handle);
                        }));
  cleanup_done = true;
}

void mtf_filesystem::clean_up_in_time() {
  // The process ends. A plugin whose cleanup did not run may abort it, so a thread that is still in
  // a call is worth waiting for; one that never returns is not.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!cleanup_done && std::chrono::steady_clock::now() < deadline) {
    if (gate.end_ignoring_pins()) return run_cleanup();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void mtf_filesystem::add_open(mtf::OpenFile* file) {
  const mtf::LockGuard lock(open_lock);
  file->put_on(open_files);
}

void mtf_filesystem::remove_open(mtf::OpenFile* file) {
  const mtf::LockGuard lock(open_lock);
  file->take_off();
}

mtf::OpenFile* mtf_filesystem::take_open() {
  const mtf::LockGuard lock(open_lock);
  mtf::OpenFile* file = open_files;
  if (file == nullptr) return nullptr;
  file->references.fetch_add(1);
  file->take_off();
  file->put_on(closing_files);
  return file;
}

void mtf_filesystem::abandon_all() {
  for (mtf::OpenFile** list : {&open_files, &closing_files}) {
    // By `next` alone: the fork may have come in the middle of a change to the other links.
    while (mtf::OpenFile* file = *list) {
      *list = file->next;
      file->link = nullptr;
      file->abandon();
    }
  }
}

// Open files and memory regions. They hold a use of their filesystem until the plugin's cleanup for
// them has run, so the filesystem's own cleanup always comes last.

using mtf::drop;
using mtf::Error;
using mtf::FilesystemUse;
using mtf::guarded;

namespace {

Error closed_file_error() { return mtf::make_closed_error("the file is closed"); }

Error interrupted_file_error(const char* what_next = mtf::kUseFileLater) {
  return mtf::make_error(TF_FAILED_PRECONDITION,
                         (std::string(mtf::kFileIsInterrupted) + what_next).c_str());
}

}  // namespace

struct mtf_reader final : mtf::OpenFile {
  TF_RandomAccessFile handle = {};
  mtf::Gate gate;

  Error close(bool) override {
    if (gate.close()) return end();
    return nullptr;
  }
  void abandon() override { gate.abandon(); }

  Error end() {
    Error error = guarded({owner->plugin, "reader cleanup", path}, [&](TF_Status* status) {
      mtf::call_without_status(*owner, owner->tables->reader.cleanup, status, &handle);
    });
    owner->remove_open(this);
    owner->leave();
    return error;
  }
  void leave() {
    if (gate.leave()) drop(end());
  }
};

struct mtf_writer final : mtf::OpenFile {
  TF_WritableFile handle = {};
  mtf::CallLock one_at_a_time;  // the header lets a plugin assume it
  bool closed = false;
  std::atomic<uint64_t> appended{0};
  std::atomic<bool> is_left{false};  // to be closed by the thread that is in a call
  std::atomic<bool> is_torn{false};  // to be discarded where nobody closes it

  Error close(bool wait) override { return close(wait, false); }
  // `keeps`: what was written is asked to be kept, even where bytes are missing.
  Error close(bool wait, bool keeps) {
    mtf::UniqueCallLock lock(one_at_a_time, std::try_to_lock);
    const bool is_own_call = !lock && one_at_a_time.is_held_by_this_thread();
    if (!lock && wait && !is_own_call) lock.lock();
    if (!lock) {
      is_left = true;
      if (!lock.try_lock()) {  // the thread that has it has yet to look
        return is_own_call ? interrupted_file_error("it is closed when that call has ended") : nullptr;
      }
    }
    return end(lock, keeps || !is_torn);
  }
  // As `close`, but what was written is not asked to be kept.
  Error discard() {
    mtf::UniqueCallLock lock(one_at_a_time, std::defer_lock);
    if (!take(lock)) return interrupted_file_error();
    return end(lock, false);
  }
  void abandon() override { closed = true; }

  // `tears`: a call that fails leaves out bytes of the file.
  template <class Call>
  Error locked(const char* operation, Call&& call, bool tears = false) {
    Error error = call_locked(operation, call, tears);
    if (!is_left) return error;
    Error not_closed = close(true);
    return error ? std::move(error) : std::move(not_closed);
  }

 private:
  // False: this thread has it.
  bool take(mtf::UniqueCallLock& lock) {
    if (lock.try_lock()) return true;
    if (one_at_a_time.is_held_by_this_thread()) return false;
    lock.lock();
    return true;
  }

  Error end(mtf::UniqueCallLock& lock, bool keeps) {
    if (closed) return nullptr;
    closed = true;
    const auto& table = owner->tables->writer;
    Error error = !keeps                   ? nullptr
                  : table.close == nullptr ? mtf::missing_operation("close")
                                           : guarded({owner->plugin, "close", path},
                                                     [&](TF_Status* status) {
                                                       table.close(&handle, status);
                                                     });
    Error cleaned_up = guarded({owner->plugin, "writer cleanup", path}, [&](TF_Status* status) {
      mtf::call_without_status(*owner, table.cleanup, status, &handle);
    });
    if (!error && owner->in_worker) error = std::move(cleaned_up);
    lock.unlock();
    owner->remove_open(this);
    owner->leave();
    return error;
  }

  template <class Call>
  Error call_locked(const char* operation, Call& call, bool tears) {
    mtf::UniqueCallLock lock(one_at_a_time, std::defer_lock);
    if (!take(lock)) return interrupted_file_error();
    if (closed || is_left) return closed_file_error();
    Error error = guarded({owner->plugin, operation, path},
                          [&](TF_Status* status) { call(owner->tables->writer, status); });
    if (error && tears) is_torn = true;
    return error;
  }
};

struct mtf_region {
  mtf_filesystem* owner = nullptr;
  TF_ReadOnlyMemoryRegion handle = {};
};

namespace {

template <class File>
void release_file(File* file) {
  if (file == nullptr) return;
  mtf_filesystem* owner = file->owner;
  drop(file->close(true));
  file->release();
  owner->release();
}

// Calls a slot that opens a file of the kind of `handle`. The filesystem is in use.
template <class Slot, class Handle>
Error call_opener(mtf_filesystem* filesystem, const char* operation, const char* path, Slot slot,
                  Handle* handle) {
  mtf::TranslatedPath translated;
  if (Error error = translated.translate(*filesystem, path)) return error;
  return guarded({filesystem->plugin, operation, path}, [&](TF_Status* status) {
    slot(&filesystem->handle, translated.get(), handle, status);
  });
}

// Opens `file` by `slot` and lists it with its filesystem; deletes it where that fails.
template <class File, class Slot>
Error open_listed(mtf_filesystem* filesystem, const char* operation, const char* path, Slot slot,
                  File** file) {
  FilesystemUse use(filesystem);
  if (!use) return mtf::closed_filesystem_error();
  auto made = std::make_unique<File>();
  made->owner = filesystem;
  made->keep_path(path);
  if (Error error = call_opener(filesystem, operation, path, slot, &made->handle)) return error;
  filesystem->references.fetch_add(1);
  filesystem->add_open(made.get());
  use.keep();
  if (filesystem->gate.is_closed()) {  // while the slot ran, so that the closer saw no such file
    release_file(made.release());
    return mtf::closed_filesystem_error();
  }
  *file = made.release();
  return nullptr;
}

// One read of the plugin: how many bytes it gave. `more` says whether others may follow.
size_t read_once(const mtf_reader& reader, uint64_t offset, char* buffer, size_t size, bool* more,
                 TF_Status* status) {
  const mtf::ReadBounds bounds(buffer, size);
  const int64_t count =
      reader.owner->tables->reader.read(&reader.handle, offset, size, buffer, status);
  const bool at_end = status->code == TF_OUT_OF_RANGE;
  if (at_end) mtf_status_clear(status);  // not an error: the count says where
  *more = false;
  if (status->code != TF_OK || (at_end && count < 0)) return 0;
  if (count < 0) {
    mtf_status_set(status, TF_INTERNAL, "read gave a negative count with an OK status");
  } else if (static_cast<uint64_t>(count) > size) {
    mtf_status_set(status, TF_INTERNAL, "read gave more bytes than were asked for");
  } else {
    *more = !at_end && count > 0;
    return static_cast<size_t>(count);
  }
  return 0;
}

// Reads until `size` bytes are there or the file ends. A plugin must say OUT_OF_RANGE with its
// last bytes; one that gives fewer than asked for with OK is asked again, until nothing comes.
size_t read_all(const mtf_reader& reader, uint64_t offset, char* buffer, size_t size,
                TF_Status* status) {
  size_t done = 0;
  for (bool more = true; more && done < size;) {
    done += read_once(reader, offset + done, buffer + done, size - done, &more, status);
  }
  return done;
}

}  // namespace

extern "C" mtf_error* mtf_reader_open(mtf_filesystem* filesystem, const char* path,
                                      mtf_reader** reader) {
  const auto slot = filesystem->tables->filesystem.new_random_access_file;
  if (slot == nullptr) return mtf::missing_operation("new_random_access_file");
  return open_listed(filesystem, "new_random_access_file", path, slot, reader);
}

extern "C" mtf_error* mtf_reader_read(mtf_reader* reader, uint64_t offset, char* buffer,
                                      size_t size, int64_t* count) {
  *count = 0;
  const auto read = reader->owner->tables->reader.read;
  if (read == nullptr) return mtf::missing_operation("read");
  const bool open = reader->gate.enter();
  Error error;
  if (!open) {
    error = closed_file_error();
  } else if (size > 0) {  // some plugins turn a read of nothing into a read of everything
    error = guarded({reader->owner->plugin, "read", reader->path}, [&](TF_Status* status) {
      *count = static_cast<int64_t>(read_all(*reader, offset, buffer, size, status));
      if (status->code == TF_OK) mtf::CallUnderWay::add_bytes(static_cast<uint64_t>(*count));
    });
  }
  reader->leave();
  if (error) *count = 0;
  return error.release();
}

extern "C" mtf_error* mtf_reader_close(mtf_reader* reader) { return reader->close(true); }
extern "C" void mtf_reader_release(mtf_reader* reader) { release_file(reader); }

extern "C" mtf_error* mtf_read_small_file(mtf_filesystem* filesystem, const char* path,
                                          char* buffer, size_t size, mtf_file_read* done,
                                          mtf_reader** reader) {
  *done = {"new_random_access_file", 0};
  mtf_reader* opened = nullptr;
  if (mtf_error* error = mtf_reader_open(filesystem, path, &opened)) return error;
  std::unique_ptr<mtf_reader, void (*)(mtf_reader*)> owned(opened, mtf_reader_release);
  done->operation = "read";
  if (mtf_error* error = mtf_reader_read(opened, 0, buffer, size, &done->count)) return error;
  if (static_cast<size_t>(done->count) == size) {
    *reader = owned.release();
    return nullptr;
  }
  done->operation = "cleanup";
  return mtf_reader_close(opened);
}

extern "C" mtf_error* mtf_writer_open(mtf_filesystem* filesystem, const char* path, int append,
                                      mtf_writer** writer) {
  const auto& operations = filesystem->tables->filesystem;
  const auto slot =
      append != 0 ? operations.new_appendable_file : operations.new_writable_file;
  const char* operation = append != 0 ? "new_appendable_file" : "new_writable_file";
  if (slot == nullptr) return mtf::missing_operation(operation);
  return open_listed(filesystem, operation, path, slot, writer);
}

extern "C" mtf_error* mtf_writer_append(mtf_writer* writer, const char* data, size_t size,
                                        int tears) {
  if (writer->owner->tables->writer.append == nullptr) return mtf::missing_operation("append");
  const auto append = [&](const TF_WritableFileOps& table, TF_Status* status) {
    const size_t most = writer->owner->in_worker ? mtf::wire::kMostAppended : size;
    size_t done = 0;
    do {
      const size_t part = size - done < most ? size - done : most;
      table.append(&writer->handle, data + done, part, status);
      if (status->code != TF_OK) return;
      done += part;
      writer->appended += part;
      mtf::CallUnderWay::add_bytes(part);
    } while (done < size);
  };
  return writer->locked("append", append, tears != 0);
}

extern "C" uint64_t mtf_writer_appended(mtf_writer* writer) { return writer->appended; }

extern "C" mtf_error* mtf_writer_tell(mtf_writer* writer, int64_t* position) {
  if (writer->owner->tables->writer.tell == nullptr) return mtf::missing_operation("tell");
  return writer->locked("tell", [&](const TF_WritableFileOps& table, TF_Status* status) {
    *position = table.tell(&writer->handle, status);
    if (status->code == TF_OK && *position < 0) {
      mtf_status_set(status, TF_INTERNAL, "tell gave a negative position with an OK status");
    }
  });
}

extern "C" mtf_error* mtf_writer_flush(mtf_writer* writer) {
  return writer->locked("flush", [&](const TF_WritableFileOps& table, TF_Status* status) {
    if (table.flush != nullptr) table.flush(&writer->handle, status);
  });
}

extern "C" mtf_error* mtf_writer_sync(mtf_writer* writer) {
  return writer->locked("sync", [&](const TF_WritableFileOps& table, TF_Status* status) {
    const auto sync = table.sync != nullptr ? table.sync : table.flush;
    if (sync != nullptr) sync(&writer->handle, status);
  });
}

extern "C" int mtf_writer_is_interrupted(const mtf_writer* writer) {
  return writer->one_at_a_time.is_held_by_this_thread() ? 1 : 0;
}

extern "C" mtf_error* mtf_writer_close(mtf_writer* writer) { return writer->close(true, true); }
extern "C" mtf_error* mtf_writer_discard(mtf_writer* writer) { return writer->discard(); }
extern "C" void mtf_writer_tear(mtf_writer* writer) { writer->is_torn = true; }
extern "C" void mtf_writer_release(mtf_writer* writer) { release_file(writer); }

extern "C" mtf_error* mtf_region_open(mtf_filesystem* filesystem, const char* path,
                                      mtf_region** region, const char** data, uint64_t* length) {
  const auto slot = filesystem->tables->filesystem.new_read_only_memory_region_from_file;
  if (slot == nullptr) return mtf::missing_operation("new_read_only_memory_region_from_file");
  FilesystemUse use(filesystem);
  if (!use) return mtf::closed_filesystem_error();
  auto made = std::make_unique<mtf_region>();
  made->owner = filesystem;
  TF_ReadOnlyMemoryRegion& handle = made->handle;
  Error error =
      call_opener(filesystem, "new_read_only_memory_region_from_file", path, slot, &handle);
  if (error) return error.release();
  const auto& table = filesystem->tables->region;
  error = guarded({filesystem->plugin, "data or length of a region", path}, [&](TF_Status* status) {
    *data = static_cast<const char*>(table.data(&handle));
    *length = table.length(&handle);
    if (*data == nullptr && *length > 0) {
      mtf_status_set(status, TF_INTERNAL, "a region with a length has no data");
    } else if (*length > PTRDIFF_MAX) {
      mtf_status_set(status, TF_INTERNAL, "a region is longer than memory can be");
    } else {
      mtf::CallUnderWay::add_bytes(*length);
    }
  });
  if (error) {
    drop(guarded({filesystem->plugin, "region cleanup", path},
                 [&](TF_Status*) { table.cleanup(&handle); }));
    return error.release();
  }
  filesystem->references.fetch_add(1);
  filesystem->gate.pin();
  use.keep();
  *region = made.release();
  return nullptr;
}

extern "C" void mtf_region_release(mtf_region* region) {
  if (region == nullptr) return;
  mtf_filesystem* owner = region->owner;
  if (owner->gate.unpin()) {  // else the process ends, and did not wait for this region
    drop(guarded({owner->plugin, "region cleanup"},
                 [&](TF_Status*) { owner->tables->region.cleanup(&region->handle); }));
    owner->leave();
  }
  delete region;
  owner->release();
}

namespace {

size_t length_of_part(const char* path) {
  size_t length = 0;
  while (path[length] != '\0' && path[length] != '/') ++length;
  return length;
}

// The part of `out` that is written so far, and how much of it `..` must not eat.
struct CleanedPath {
  char* out;
  size_t length;
  size_t floor;  // the root slash, or leading ".." of a relative path
  bool absolute;

  void append(const char* part, size_t size) {
    if (length > 0 && out[length - 1] != '/') out[length++] = '/';
    std::memcpy(out + length, part, size);
    length += size;
  }

  void go_up() {
    if (length > floor) {
      while (length > floor && out[length - 1] != '/') --length;
      if (length > floor) --length;  // the slash before the part
    } else if (!absolute) {
      append("..", 2);
      floor = length;
    }
  }
};

}  // namespace

extern "C" size_t mtf_uri_path_offset(const char* uri, size_t* scheme_length) {
  const size_t length = mtf_scheme_length(uri, SIZE_MAX);
  if (scheme_length != nullptr) *scheme_length = length;
  if (length == 0) return 0;
  const char* host = uri + length + 3;
  return static_cast<size_t>(host - uri) + length_of_part(host);
}

extern "C" size_t mtf_clean_path(const char* path, char* out) {
  const bool absolute = path[0] == '/';
  CleanedPath cleaned = {out, 0, 0, absolute};
  if (absolute) {
    out[cleaned.length++] = '/';
    cleaned.floor = 1;
  }
  for (const char* part = path; *part != '\0';) {
    const size_t size = length_of_part(part);
    if (size == 2 && part[0] == '.' && part[1] == '.') {
      cleaned.go_up();
    } else if (size > 0 && !(size == 1 && part[0] == '.')) {
      cleaned.append(part, size);
    }
    part += size;
    while (*part == '/') ++part;
  }
  if (cleaned.length == 0) out[cleaned.length++] = '.';
  out[cleaned.length] = '\0';
  return cleaned.length;
}
