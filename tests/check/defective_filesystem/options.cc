// Options beside what the reference plugin offers: capacity_bytes, by which what is longer is refused,
// and so is the close of a file that was refused a part, and block_bytes, which means nothing.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>
#include <set>

#include "defects.h"

namespace {

using defective::Tables;

struct Option {
  const char* name;
  std::atomic<int64_t> value;
};

Option options_of_all[] = {{"capacity_bytes", {0}}, {"block_bytes", {4096}}};
std::atomic<int64_t>& capacity = options_of_all[0].value;  // 0: no limit
std::mutex lock;
std::set<const void*> cut;  // the handles of files that were refused a part
TF_WritableFileOps reference;

template <class T>
T* zeroed() {
  return static_cast<T*>(std::calloc(1, sizeof(T)));
}

Option* find(const char* name) {
  for (Option& option : options_of_all) {
    if (std::strcmp(option.name, name) == 0) return &option;
  }
  return nullptr;
}

void fill(const Option& from, TF_Filesystem_Option& option) {
  option.name = strdup(from.name);
  option.description = strdup("A number of bytes.");
  option.value = zeroed<TF_Filesystem_Option_Value>();
  option.value->type_tag = TF_Filesystem_Option_Type_Int;
  option.value->num_values = 1;
  option.value->values = zeroed<TF_Filesystem_Option_Value_Union>();
  option.value->values[0].int_val = from.value;
}

void get_configuration(const TF_Filesystem*, TF_Filesystem_Option** options, int* count,
                       TF_Status* status) {
  *count = 0;
  *options = static_cast<TF_Filesystem_Option*>(
      std::calloc(std::size(options_of_all), sizeof(TF_Filesystem_Option)));
  for (const Option& option : options_of_all) fill(option, (*options)[(*count)++]);
  TF_SetStatus(status, TF_OK, "");
}

void get_option(const TF_Filesystem*, const char* key, TF_Filesystem_Option** option,
                TF_Status* status) {
  const Option* found = find(key);
  if (found == nullptr) return TF_SetStatus(status, TF_NOT_FOUND, key);
  *option = zeroed<TF_Filesystem_Option>();
  fill(*found, **option);
  TF_SetStatus(status, TF_OK, "");
}

void set_configuration(const TF_Filesystem*, const TF_Filesystem_Option* options, int count,
                       TF_Status* status) {
  for (int i = 0; i < count; ++i) {
    const TF_Filesystem_Option_Value& value = *options[i].value;
    Option* found = find(options[i].name);
    if (found == nullptr) return TF_SetStatus(status, TF_NOT_FOUND, options[i].name);
    if (value.type_tag != TF_Filesystem_Option_Type_Int || value.num_values != 1) {
      return TF_SetStatus(status, TF_INVALID_ARGUMENT, "one whole number is expected");
    }
    found->value = value.values[0].int_val;
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
