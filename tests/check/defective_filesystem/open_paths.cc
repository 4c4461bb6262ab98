#include "open_paths.h"

#include <map>
#include <mutex>
#include <string>

namespace defective {
namespace {

std::mutex mutex;

// Never destroyed: files may be open while the process ends. Nothing is ever taken out.
std::map<const void*, std::string>& paths() {
  static auto& known = *new std::map<const void*, std::string>();
  return known;
}

}  // namespace

const char* path_of(const void* handle) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = paths().find(handle);
  return found == paths().end() ? "" : found->second.c_str();
}

void remember_path(const void* handle, const char* path) {
  const std::lock_guard<std::mutex> lock(mutex);
  paths()[handle] = path;
}

void follow_readers(Tables& tables) {
  tables.filesystem.new_random_access_file = [](const TF_Filesystem* filesystem, const char* path,
                                                TF_RandomAccessFile* file, TF_Status* status) {
    original.filesystem.new_random_access_file(filesystem, path, file, status);
    if (TF_GetCode(status) == TF_OK) remember_path(file->plugin_file, path);
  };
}

void follow_writers(Tables& tables) {
  tables.filesystem.new_writable_file = [](const TF_Filesystem* filesystem, const char* path,
                                           TF_WritableFile* file, TF_Status* status) {
    original.filesystem.new_writable_file(filesystem, path, file, status);
    if (TF_GetCode(status) == TF_OK) remember_path(file->plugin_file, path);
  };
  tables.filesystem.new_appendable_file = [](const TF_Filesystem* filesystem, const char* path,
                                             TF_WritableFile* file, TF_Status* status) {
    original.filesystem.new_appendable_file(filesystem, path, file, status);
    if (TF_GetCode(status) == TF_OK) remember_path(file->plugin_file, path);
  };
}

void follow_regions(Tables& tables) {
  tables.filesystem.new_read_only_memory_region_from_file =
      [](const TF_Filesystem* filesystem, const char* path, TF_ReadOnlyMemoryRegion* region,
         TF_Status* status) {
        original.filesystem.new_read_only_memory_region_from_file(filesystem, path, region,
                                                                  status);
        if (TF_GetCode(status) == TF_OK) remember_path(region->plugin_memory_region, path);
      };
}

}  // namespace defective
