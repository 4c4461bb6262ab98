// One option beside what the reference plugin offers, capacity_bytes: what is longer is refused, and
// so is the close of a file that was refused a part.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "defects.h"

namespace {

using defective::Tables;

constexpr char kName[] = "capacity_bytes";

std::atomic<int64_t> capacity{0};  // 0: no limit
std::mutex lock;
std::set<const void*> cut;  // the handles of files that were refused a part
TF_WritableFileOps reference;

template <class T>
T* zeroed() {
  return static_cast<T*>(std::calloc(1, sizeof(T)));
}

TF_Filesystem_Option* exported() {
  auto* option = zeroed<TF_Filesystem_Option>();
  option->name = strdup(kName);
  option->description = strdup("Bytes that may be appended at once. 0: no limit.");
  option->value = zeroed<TF_Filesystem_Option_Value>();
  option->value->type_tag = TF_Filesystem_Option_Type_Int;
  option->value->num_values = 1;
  option->value->values = zeroed<TF_Filesystem_Option_Value_Union>();
  option->value->values[0].int_val = capacity;
  return option;
}

void get_configuration(const TF_Filesystem*, TF_Filesystem_Option** options, int* count,
                       TF_Status* status) {
  *options = exported();
  *count = 1;
  TF_SetStatus(status, TF_OK, "");
}

void get_option(const TF_Filesystem*, const char* key, TF_Filesystem_Option** option,
                TF_Status* status) {
  if (std::strcmp(key, kName) != 0) return TF_SetStatus(status, TF_NOT_FOUND, key);
  *option = exported();
  TF_SetStatus(status, TF_OK, "");
}

void set_configuration(const TF_Filesystem*, const TF_Filesystem_Option* options, int count,
                       TF_Status* status) {
  for (int i = 0; i < count; ++i) {
    const TF_Filesystem_Option_Value& value = *options[i].value;
    if (std::strcmp(options[i].name, kName) != 0) {
      return TF_SetStatus(status, TF_NOT_FOUND, options[i].name);
    }
    if (value.type_tag != TF_Filesystem_Option_Type_Int || value.num_values != 1) {
      return TF_SetStatus(status, TF_INVALID_ARGUMENT, "one whole number is expected");
    }
    capacity = value.values[0].int_val;
  }
  TF_SetStatus(status, TF_OK, "");
}

void set_option(const TF_Filesystem* filesystem, const TF_Filesystem_Option* option,
                TF_Status* status) {
  set_configuration(filesystem, option, 1, status);
}

void append(const TF_WritableFile* file, const char* buffer, size_t n, TF_Status* status) {
  if (capacity == 0 || n <= static_cast<size_t>(capacity)) {
    return reference.append(file, buffer, n, status);
  }
  const std::lock_guard<std::mutex> held(lock);
  cut.insert(file->plugin_file);
  TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "there is no room");
}

void close_file(const TF_WritableFile* file, TF_Status* status) {
  reference.close(file, status);
  const std::lock_guard<std::mutex> held(lock);
  if (cut.count(file->plugin_file) != 0) {
    TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "there was no room");
  }
}

void clean_up_file(TF_WritableFile* file) {
  {
    const std::lock_guard<std::mutex> held(lock);
    cut.erase(file->plugin_file);
  }
  reference.cleanup(file);
}

}  // namespace

namespace defective {

void add_options(Tables& tables) {
  reference = tables.writing;
  tables.writing.append = append;
  tables.writing.close = close_file;
  tables.writing.cleanup = clean_up_file;
  tables.filesystem.get_filesystem_configuration = get_configuration;
  tables.filesystem.get_filesystem_configuration_option = get_option;
  tables.filesystem.set_filesystem_configuration = set_configuration;
  tables.filesystem.set_filesystem_configuration_option = set_option;
}

}  // namespace defective
