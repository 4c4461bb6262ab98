// Operations on names.
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "fork_gate.h"
#include "slots.h"

namespace ram {
namespace {

void say(const TF_Filesystem* filesystem, Fault fault, const char* path, TF_Status* status) {
  report(fault, *instance_of(filesystem).account, path, status);
}

// One operation of the tree on one path.
void apply(const TF_Filesystem* filesystem, const char* path,
           Fault (Tree::*operation)(std::string_view), TF_Status* status) {
  const Fault fault = caught([&] { return (instance_of(filesystem).tree.*operation)(path); });
  say(filesystem, fault, path, status);
}

// One operation of the tree on two paths; the message names both.
void apply(const TF_Filesystem* filesystem, const char* source, const char* target,
           Fault (Tree::*operation)(std::string_view, std::string_view), TF_Status* status) {
  std::string both;
  const Fault fault = caught([&] {
    both.append(source).append(" -> ").append(target);
    return (instance_of(filesystem).tree.*operation)(source, target);
  });
  say(filesystem, fault, both.c_str(), status);
}

Fault describe(const TF_Filesystem* filesystem, const char* path, Facts& facts) {
  return caught([&] { return instance_of(filesystem).tree.describe(path, facts); });
}

void init(TF_Filesystem* filesystem, TF_Status* status) {
  const Fault fault = caught([&] {
    if (!watch_forks()) return Fault::kNoMemory;
    filesystem->plugin_filesystem = new Instance();
    return Fault::kNone;
  });
  TF_SetStatus(status, code_of(fault), text_of(fault));
}

void cleanup(TF_Filesystem* filesystem) {
  delete static_cast<Instance*>(filesystem->plugin_filesystem);
  filesystem->plugin_filesystem = nullptr;
}

void create_dir(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  apply(filesystem, path, &Tree::make_directory, status);
}

void recursively_create_dir(const TF_Filesystem* filesystem, const char* path,
                            TF_Status* status) {
  apply(filesystem, path, &Tree::make_directories, status);
}

void delete_file(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  apply(filesystem, path, &Tree::delete_file, status);
}

void delete_dir(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  apply(filesystem, path, &Tree::delete_directory, status);
}

// Nothing in the tree can refuse to go, so either all goes or the walk did not start.
void delete_recursively(const TF_Filesystem* filesystem, const char* path,
                        uint64_t* undeleted_files, uint64_t* undeleted_dirs, TF_Status* status) {
  const Fault fault = caught([&] { return instance_of(filesystem).tree.delete_tree(path); });
  *undeleted_files = 0;
  *undeleted_dirs = fault == Fault::kNone ? 0 : 1;
  say(filesystem, fault, path, status);
}

void rename_file(const TF_Filesystem* filesystem, const char* source, const char* target,
                 TF_Status* status) {
  apply(filesystem, source, target, &Tree::rename_file, status);
}

void copy_file(const TF_Filesystem* filesystem, const char* source, const char* target,
               TF_Status* status) {
  apply(filesystem, source, target, &Tree::copy_file, status);
}

void path_exists(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  Facts facts;
  say(filesystem, describe(filesystem, path, facts), path, status);
}

// `statuses` may be NULL: then only the answer for all together is wanted.
bool paths_exist(const TF_Filesystem* filesystem, char** paths, int num_files,
                 TF_Status** statuses) {
  std::vector<Fault> faults;
  const Fault failure = caught([&] {
    const std::vector<std::string_view> views(paths, paths + num_files);
    faults = instance_of(filesystem).tree.probe(views);
    return Fault::kNone;
  });
  bool all = true;
  for (int i = 0; i < num_files; ++i) {
    const Fault fault = failure == Fault::kNone ? faults[static_cast<size_t>(i)] : failure;
    all = all && fault == Fault::kNone;
    if (statuses != nullptr) say(filesystem, fault, paths[i], statuses[i]);
  }
  return all;
}

void stat(const TF_Filesystem* filesystem, const char* path, TF_FileStatistics* statistics,
          TF_Status* status) {
  Facts facts;
  const Fault fault = describe(filesystem, path, facts);
  if (fault == Fault::kNone) *statistics = {facts.length, facts.mtime_nsec, facts.is_directory};
  say(filesystem, fault, path, status);
}

// For a file the header would take OK and false, but TensorFlow reads only the status.
bool is_directory(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  Facts facts;
  Fault fault = describe(filesystem, path, facts);
  if (fault == Fault::kNone && !facts.is_directory) fault = Fault::kNotDirectory;
  say(filesystem, fault, path, status);
  return fault == Fault::kNone;
}

int64_t get_file_size(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  Facts facts;
  Fault fault = describe(filesystem, path, facts);
  if (fault == Fault::kNone && facts.is_directory) fault = Fault::kIsDirectory;
  say(filesystem, fault, path, status);
  return fault == Fault::kNone ? facts.length : -1;
}

char* c_string(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  return static_cast<char*>(std::memcpy(copy, text.c_str(), text.size() + 1));
}

// The host forbids NULL here; out of memory is the only way to it.
char* translate_name(const TF_Filesystem*, const char* uri) {
  char* path = nullptr;
  caught([&] {
    path = c_string(canonical_path(uri));
    return Fault::kNone;
  });
  return path;
}

// Moves `names` into memory that the host frees, name by name and then the array.
char** exported(const std::vector<std::string>& names) {
  if (names.empty()) return nullptr;
  auto** entries = static_cast<char**>(std::calloc(names.size(), sizeof(char*)));
  if (entries == nullptr) throw std::bad_alloc();
  try {
    for (size_t i = 0; i < names.size(); ++i) entries[i] = c_string(names[i]);
  } catch (const std::bad_alloc&) {
    for (size_t i = 0; i < names.size(); ++i) std::free(entries[i]);
    std::free(entries);
    throw;
  }
  return entries;
}

int get_children(const TF_Filesystem* filesystem, const char* path, char*** entries,
                 TF_Status* status) {
  std::vector<std::string> names;
  const Fault fault = caught([&] {
    const Fault listed = instance_of(filesystem).tree.list(path, names);
    if (listed == Fault::kNone) *entries = exported(names);
    return listed;
  });
  say(filesystem, fault, path, status);
  return fault == Fault::kNone ? static_cast<int>(names.size()) : -1;
}

}  // namespace

// Left NULL on purpose:
// - get_matching_paths: the host walks with get_children and is_directory, and so would we;
// - flush_caches: the memory is the store, there is nothing in front of it;
// - transactions: single operations are atomic, groups of them are not.
void fill_filesystem_slots(TF_FilesystemOps& ops) {
  ops.init = in_call<init>;
  ops.cleanup = in_call<cleanup>;
  ops.create_dir = in_call<create_dir>;
  ops.recursively_create_dir = in_call<recursively_create_dir>;
  ops.delete_file = in_call<delete_file>;
  ops.delete_dir = in_call<delete_dir>;
  ops.delete_recursively = in_call<delete_recursively>;
  ops.rename_file = in_call<rename_file>;
  ops.copy_file = in_call<copy_file>;
  ops.path_exists = in_call<path_exists>;
  ops.paths_exist = in_call<paths_exist>;
  ops.stat = in_call<stat>;
  ops.is_directory = in_call<is_directory>;
  ops.get_file_size = in_call<get_file_size>;
  ops.translate_name = in_call<translate_name>;
  ops.get_children = in_call<get_children>;
}

}  // namespace ram
