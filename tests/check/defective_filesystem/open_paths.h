// Which path an open file or region was opened with.
#pragma once

#include "defects.h"
#include "paths.h"

namespace defective {

// From now on the paths of these are known.
void follow_readers(Tables& tables);
void follow_writers(Tables& tables);
void follow_regions(Tables& tables);

// What was opened at last with this pointer of the plugin's; "" for nothing.
const char* path_of(const void* handle);
void remember_path(const void* handle, const char* path);

inline bool is_of(const TF_RandomAccessFile* file, const char* names) {
  return ends_in(path_of(file->plugin_file), names);
}
inline bool is_of(const TF_WritableFile* file, const char* names) {
  return ends_in(path_of(file->plugin_file), names);
}
inline bool is_of(const TF_ReadOnlyMemoryRegion* region, const char* names) {
  return ends_in(path_of(region->plugin_memory_region), names);
}

}  // namespace defective
