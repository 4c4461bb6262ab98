// The path operations: translate, call the slot, copy the result out of the plugin's memory.
#include <cstring>
#include <string>
#include <vector>

#include "copied_text.h"
#include "filesystem_state.h"
#include "plugin_strings.h"

using mtf::Error;
using mtf::FilesystemUse;
using mtf::guarded;
using mtf::on_path;
using mtf::TranslatedPath;
using mtf::with_path;

namespace {

// One slot of the shape (filesystem, path, status).
template <auto Slot>
Error path_operation(mtf_filesystem* filesystem, const char* path, const char* name) {
  const auto operation = filesystem->tables->filesystem.*Slot;
  if (operation == nullptr) return mtf::missing_operation(name);
  return on_path(filesystem, name, path, [&](const char* translated, TF_Status* status) {
    operation(&filesystem->handle, translated, status);
  });
}

// One slot of the shape (filesystem, source, target, status).
template <auto Slot>
Error two_path_operation(mtf_filesystem* filesystem, const char* source, const char* target,
                         const char* name) {
  const auto operation = filesystem->tables->filesystem.*Slot;
  if (operation == nullptr) return mtf::missing_operation(name);
  return with_path(filesystem, source, [&](const char* from) {
    return on_path(filesystem, name, target, [&](const char* to, TF_Status* status) {
      operation(&filesystem->handle, from, to, status);
    });
  });
}

using ListSlot = int (*)(const TF_Filesystem*, const char*, char***, TF_Status*);

// `subject` is the path as the user wrote it.
Error list_strings(mtf_filesystem* filesystem, const char* operation, ListSlot slot,
                   const char* subject, const char* path, mtf_strings* strings) {
  char** entries = nullptr;
  int count = -1;  // where the slot throws
  Error error = guarded({filesystem->plugin, operation, subject}, [&](TF_Status* status) {
    count = slot(&filesystem->handle, path, &entries, status);
  });
  const mtf::PluginStrings taken(filesystem->plugin, entries, count,
                                 filesystem->tables->plugin_free);
  return error ? std::move(error) : taken.copy_to(strings);
}

// Runs call(name) with the name by which the plugin knows a path, also where a worker translates.
template <class Call>
Error with_name(mtf_filesystem* filesystem, const char* path, Call&& call) {
  FilesystemUse use(filesystem);
  if (!use) return mtf::closed_filesystem_error();
  TranslatedPath translated;
  if (Error error = translated.translate_here(*filesystem, path)) return error;
  return call(translated.get());
}

}  // namespace

extern "C" mtf_error* mtf_translate_name(mtf_filesystem* filesystem, const char* path,
                                         char** name) {
  return with_name(filesystem, path, [&](const char* translated) -> Error {
    *name = mtf_copied_text(translated);
    return *name != nullptr ? nullptr : mtf::make_error(TF_RESOURCE_EXHAUSTED, "no memory for a name");
  });
}

extern "C" int mtf_is_same_name(mtf_filesystem* filesystem, const char* one, const char* other) {
  bool same = false;
  const Error ended = with_name(filesystem, one, [&](const char* first) {
    return with_name(filesystem, other, [&](const char* second) -> Error {
      same = std::strcmp(first, second) == 0;
      return nullptr;
    });
  });
  return same ? 1 : 0;
}

extern "C" mtf_error* mtf_create_dir(mtf_filesystem* filesystem, const char* path) {
  return path_operation<&TF_FilesystemOps::create_dir>(filesystem, path, "create_dir");
}

extern "C" mtf_error* mtf_recursively_create_dir(mtf_filesystem* filesystem, const char* path) {
  return path_operation<&TF_FilesystemOps::recursively_create_dir>(filesystem, path,
                                                                   "recursively_create_dir");
}

extern "C" mtf_error* mtf_delete_file(mtf_filesystem* filesystem, const char* path) {
  return path_operation<&TF_FilesystemOps::delete_file>(filesystem, path, "delete_file");
}

extern "C" mtf_error* mtf_delete_dir(mtf_filesystem* filesystem, const char* path) {
  return path_operation<&TF_FilesystemOps::delete_dir>(filesystem, path, "delete_dir");
}

extern "C" mtf_error* mtf_delete_recursively(mtf_filesystem* filesystem, const char* path,
                                             uint64_t* undeleted_files, uint64_t* undeleted_dirs) {
  const auto operation = filesystem->tables->filesystem.delete_recursively;
  if (operation == nullptr) return mtf::missing_operation("delete_recursively");
  *undeleted_files = *undeleted_dirs = 0;
  return on_path(filesystem, "delete_recursively", path,
                 [&](const char* translated, TF_Status* status) {
    operation(&filesystem->handle, translated, undeleted_files, undeleted_dirs, status);
  });
}

extern "C" mtf_error* mtf_rename_file(mtf_filesystem* filesystem, const char* source,
                                      const char* target) {
  return two_path_operation<&TF_FilesystemOps::rename_file>(filesystem, source, target,
                                                            "rename_file");
}

extern "C" mtf_error* mtf_copy_file(mtf_filesystem* filesystem, const char* source,
                                    const char* target) {
  return two_path_operation<&TF_FilesystemOps::copy_file>(filesystem, source, target, "copy_file");
}

extern "C" mtf_error* mtf_path_exists(mtf_filesystem* filesystem, const char* path) {
  return path_operation<&TF_FilesystemOps::path_exists>(filesystem, path, "path_exists");
}

extern "C" mtf_error* mtf_paths_exist(mtf_filesystem* filesystem, const char* const* paths,
                                      int count, mtf_error** errors, int* all) {
  const auto operation = filesystem->tables->filesystem.paths_exist;
  if (operation == nullptr) return mtf::missing_operation("paths_exist");
  FilesystemUse use(filesystem);
  if (!use) return mtf::closed_filesystem_error();
  std::vector<mtf::CallStatus> statuses(static_cast<size_t>(count));
  std::vector<std::string> names;
  std::vector<char*> arguments;
  std::vector<TF_Status*> pointers;
  for (int i = 0; i < count; ++i) {
    TranslatedPath translated;
    if (Error error = translated.translate(*filesystem, paths[i])) return error.release();
    names.emplace_back(translated.get());
  }
  for (auto& name : names) arguments.push_back(&name[0]);
  for (auto& status : statuses) pointers.push_back(status.get());
  Error error = guarded({filesystem->plugin, "paths_exist", count > 0 ? paths[0] : nullptr},
                        [&](TF_Status*) {
    *all = mtf::returning_byte(operation)(
        &filesystem->handle, arguments.data(), count, pointers.data()) != 0;
  });
  for (int i = 0; i < count; ++i) errors[i] = mtf::take_status(pointers[static_cast<size_t>(i)]);
  return error.release();
}

extern "C" mtf_error* mtf_stat_path(mtf_filesystem* filesystem, const char* path,
                                    char* result) {
  const auto operation = filesystem->tables->filesystem.stat;
  if (operation == nullptr) return mtf::missing_operation("stat");
  TF_FileStatistics statistics = {};
  statistics.length = INT64_MIN;  // no file has it: tells "not filled in" from "empty"
  Error error = on_path(filesystem, "stat", path, [&](const char* translated, TF_Status* status) {
    operation(&filesystem->handle, translated, &statistics, status);
    if (status->code != TF_OK) return;
    if (statistics.length == INT64_MIN) {
      mtf_status_set(status, TF_INTERNAL, "stat succeeded without filling in its result");
    } else if (statistics.length < 0) {
      mtf_status_set(status, TF_INTERNAL, "stat gave a negative length");
    }
  });
  static_assert(sizeof statistics == 24, "what the caller has room for");
  std::memcpy(result, &statistics, sizeof statistics);
  return error.release();
}

extern "C" mtf_error* mtf_is_directory(mtf_filesystem* filesystem, const char* path, int* result) {
  const auto operation = filesystem->tables->filesystem.is_directory;
  if (operation == nullptr) return mtf::missing_operation("is_directory");
  return on_path(filesystem, "is_directory", path,
                 [&](const char* translated, TF_Status* status) {
    *result = mtf::returning_byte(operation)(&filesystem->handle, translated, status) != 0;
  });
}

extern "C" mtf_error* mtf_get_file_size(mtf_filesystem* filesystem, const char* path,
                                        int64_t* size) {
  const auto operation = filesystem->tables->filesystem.get_file_size;
  if (operation == nullptr) return mtf::missing_operation("get_file_size");
  return on_path(filesystem, "get_file_size", path,
                 [&](const char* translated, TF_Status* status) {
    *size = operation(&filesystem->handle, translated, status);
    if (status->code == TF_OK && *size < 0) {
      mtf_status_set(status, TF_INTERNAL, "get_file_size gave a negative size");
    }
  });
}

extern "C" mtf_error* mtf_get_children(mtf_filesystem* filesystem, const char* path,
                                       mtf_strings* names) {
  const auto operation = filesystem->tables->filesystem.get_children;
  if (operation == nullptr) return mtf::missing_operation("get_children");
  return with_path(filesystem, path, [&](const char* translated) {
    return list_strings(filesystem, "get_children", operation, path, translated, names);
  });
}

extern "C" mtf_error* mtf_get_matching_paths(mtf_filesystem* filesystem, const char* pattern,
                                             mtf_strings* paths) {
  const auto operation = filesystem->tables->filesystem.get_matching_paths;
  if (operation == nullptr) return mtf::missing_operation("get_matching_paths");
  FilesystemUse use(filesystem);
  if (!use) return mtf::closed_filesystem_error();
  // A pattern is passed as it is: TensorFlow does not translate it either.
  return list_strings(filesystem, "get_matching_paths", operation, pattern, pattern, paths);
}

extern "C" mtf_error* mtf_flush_caches(mtf_filesystem* filesystem) {
  const auto operation = filesystem->tables->filesystem.flush_caches;
  FilesystemUse use(filesystem);
  if (!use) return mtf::closed_filesystem_error();
  if (operation == nullptr) return nullptr;
  return guarded({filesystem->plugin, "flush_caches"}, [&](TF_Status* status) {
    if (filesystem->in_worker != nullptr) {
      filesystem->in_worker->flush_caches(&filesystem->handle, status);
    } else {
      operation(&filesystem->handle);
    }
  });
}
