// The host's side of a plugin's filesystem and its open files: who may call, and when cleanup runs.
#pragma once

#include <atomic>
#include <cstring>

#include "filesystem.h"
#include "filesystem_slots.h"
#include "fork_lock.h"
#include "gate.h"
#include "guard.h"
#include "modular_tf/filesystem.h"

namespace mtf {

// The protected block that registration builds: the host's canonical tables, in this order.
struct Tables {
  TF_FilesystemOps filesystem;
  TF_RandomAccessFileOps reader;
  TF_WritableFileOps writer;
  TF_ReadOnlyMemoryRegionOps region;
  void* (*plugin_allocate)(size_t);
  void (*plugin_free)(void*);
};

// What readers and writers share: a place in a list of their filesystem, so that it can close them.
struct OpenFile {
  static constexpr size_t kMostOfAPath = 256;

  mtf_filesystem* owner = nullptr;
  OpenFile* next = nullptr;
  OpenFile** link = nullptr;  // what points here; NULL when not listed
  char path[kMostOfAPath];    // for messages, as its user wrote it; cut where it is longer

  void keep_path(const char* whole) {
    if (memccpy(path, whole, '\0', sizeof path) == nullptr) path[sizeof path - 1] = '\0';
  }

  void put_on(OpenFile*& list);
  void take_off();  // nothing where it is not listed
  std::atomic<int> references{1};

  // Without `wait` a file that another thread uses is closed by that one, when its call has ended.
  virtual Error close(bool wait) = 0;
  virtual void abandon() = 0;  // in a forked child: the plugin's part belongs to the parent
  virtual ~OpenFile() = default;

  void release() {
    if (references.fetch_sub(1) == 1) delete this;
  }
};

Error closed_filesystem_error();
Error missing_operation(const char* name);

}  // namespace mtf

struct mtf_filesystem {
  // Neither is owned; both outlive it.
  mtf_filesystem(const void* its_tables, const mtf_plugin* its_plugin)
      : tables(static_cast<const mtf::Tables*>(its_tables)), plugin(its_plugin) {}

  TF_Filesystem handle = {};
  const mtf::Tables* tables;
  const mtf_plugin* plugin;  // for messages
  // The functions of `tables` call a worker, which translates paths itself. Those to which the interface gives
  // no status have one (call_without_status).
  bool in_worker = false;
  bool is_shared = false;  // `handle` is, with others of the plugin (filesystem.cc)
  mtf::Gate gate;  // calls and open files are its users, and regions, which rest
  std::atomic<int> references{1};
  std::atomic<bool> cleanup_done{false};
  mtf::Lock open_lock;  // of the lists
  mtf::OpenFile* open_files = nullptr;
  mtf::OpenFile* closing_files = nullptr;  // taken by a close that has not ended

  void leave();           // ends one use; the last after close runs the plugin's cleanup
  void run_cleanup();
  void clean_up_in_time();  // waits a while for calls of other threads, not for regions
  void add_open(mtf::OpenFile* file);
  void remove_open(mtf::OpenFile* file);
  mtf::OpenFile* take_open();  // a reference to some open file, which is closing now; NULL: no more
  void abandon_all();          // in a forked child
  void release() {
    if (references.fetch_sub(1) == 1) delete this;
  }
};

namespace mtf {

// One call's right to use the filesystem.
class FilesystemUse {
 public:
  explicit FilesystemUse(mtf_filesystem* filesystem)
      : filesystem_(filesystem), open_(filesystem->gate.enter()) {}
  ~FilesystemUse() {
    if (filesystem_ != nullptr) filesystem_->leave();
  }
  FilesystemUse(const FilesystemUse&) = delete;
  FilesystemUse& operator=(const FilesystemUse&) = delete;
  explicit operator bool() const { return open_; }
  // The use goes on in an open file or region, which leaves when it ends.
  void keep() { filesystem_ = nullptr; }

 private:
  mtf_filesystem* filesystem_;
  bool open_;
};

// A path as the plugin wants it, freed by its allocator.
class TranslatedPath {
 public:
  TranslatedPath() = default;
  ~TranslatedPath();
  TranslatedPath(const TranslatedPath&) = delete;
  TranslatedPath& operator=(const TranslatedPath&) = delete;
  // Once, before get(). A worker gets the path as it is.
  Error translate(const mtf_filesystem& filesystem, const char* path);
  Error translate_here(const mtf_filesystem& filesystem, const char* path);
  const char* get() const { return path_; }

 private:
  Error translate_by_default(const char* path);

  static constexpr size_t kInline = 512;
  char* path_ = nullptr;
  const mtf_plugin* plugin_ = nullptr;
  void (*plugin_free_)(void*) = nullptr;
  bool on_heap_ = false;
  char inline_[kInline];
};

// Calls a slot to which the interface gives no status. A function that calls a worker has it, as its last
// argument: such a call may fail.
template <class Result, class... Parameters, class... Arguments>
Result call_without_status(const mtf_filesystem& filesystem, Result (*slot)(Parameters...), TF_Status* status,
                           Arguments... arguments) {
  if (!filesystem.in_worker) return slot(arguments...);
  return as_function<Result (*)(Parameters..., TF_Status*)>(slot)(arguments..., status);
}

// The same slot with its C bool as a byte: only the low byte of the result is defined.
template <class... Arguments>
auto returning_byte(bool (*slot)(Arguments...)) {
  return as_function<unsigned char (*)(Arguments...)>(slot);
}

// The strings that a slot returns: those of a plugin, copied and given back to its own free, and those that
// the host returns in its place.

// An array of strings that a plugin made; a negative count says that it made none.
class PluginStrings {
 public:
  PluginStrings(const mtf_plugin* plugin, char** entries, int count, void (*plugin_free)(void*))
      : plugin_(plugin), entries_(entries), count_(count), free_(plugin_free) {}
  ~PluginStrings();
  PluginStrings(const PluginStrings&) = delete;
  PluginStrings& operator=(const PluginStrings&) = delete;

  // Reads each entry once: the plugin may change the array and the strings meanwhile.
  Error copy_to(mtf_strings* strings) const;

 private:
  const mtf_plugin* plugin_;
  char** entries_;
  int count_;
  void (*free_)(void*);
};

// Makes the array of `count` names, at most 2^24, which lie one behind the other in `size` bytes that another
// process may change meanwhile; array and names are malloc's. Returns how many; -1: there are fewer names in the
// bytes, or there is no memory.
int split_names(const char* bytes, size_t size, int64_t count, char*** entries);

// The blocks of memory of an array of options: each pointer in it is one.

constexpr int kIntegers = 0, kReals = 1, kBuffers = 2;  // the type tags

// Gives every block back by release(block), which accepts NULL.
template <class Release>
void release_options(mtf_option* options, int count, Release&& release) {
  for (int i = 0; options != nullptr && i < count; ++i) {
    mtf_option_value* value = options[i].value;
    const bool has_buffers =
        value != nullptr && value->type_tag == kBuffers && value->values != nullptr;
    for (int j = 0; has_buffers && j < value->num_values; ++j) {
      release(value->values[j].buffer.bytes);
    }
    if (value != nullptr) release(value->values);
    release(value);
    release(options[i].name);
    release(options[i].description);
  }
  release(options);
}

}  // namespace mtf
