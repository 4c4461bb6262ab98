#include "open_paths.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <mutex>

namespace defective {
namespace {

// The book lies in memory of the library: on the heap, checks would take what it keeps for a leak.
// It forgets what was opened longest ago; no check has so many files open at once.
constexpr size_t kMostFiles = 4096;
constexpr size_t kMostBytes = 256;  // of a path, its end, with a NUL

struct Entry {
  const void* handle;
  char path[kMostBytes];
};

std::mutex mutex;
std::array<Entry, kMostFiles> book;
size_t written = 0;

Entry* entry_of(const void* handle) {
  for (size_t i = 0; i < book.size() && i < written; ++i) {
    if (book[i].handle == handle) return &book[i];
  }
  return nullptr;
}

}  // namespace

const char* path_of(const void* handle) {
  const std::lock_guard<std::mutex> lock(mutex);
  const Entry* entry = entry_of(handle);
  return entry == nullptr ? "" : entry->path;
}

void remember_path(const void* handle, const char* path) {
  const std::lock_guard<std::mutex> lock(mutex);
  Entry* entry = entry_of(handle);
  if (entry == nullptr) entry = &book[written++ % book.size()];
  const size_t length = std::strlen(path);
  entry->handle = handle;
  std::strcpy(entry->path, length < kMostBytes ? path : path + length - (kMostBytes - 1));
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
