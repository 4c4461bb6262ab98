// A filesystem plugin that does what C callers cannot take, or what its header forbids.
//
// Schemes: `throws` raises a C++ exception from every slot but init, cleanup and the openers;
// `names` from translate_name; `ends` from every cleanup; `starts` from init; `odd` returns, by path
// or key, what makes no sense; `odd.count` has a negative number of options. `lists` returns memory
// wherever a slot may; with THROWING_FREE each of the plugin's frees throws when it is done. `fails`
// fails with the code in the path, fails://h/CODE, path_exists with OTHER of fails://h/CODE/OTHER;
// what is opened as fails://h/open/CODE fails when it is used.
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "modular_tf/filesystem.h"

namespace {

// Makes a slot throw, whatever its type.
template <class Result, class... Arguments>
void make_throw(Result (*&slot)(Arguments...)) {
  slot = [](Arguments...) -> Result { throw std::runtime_error("thrown by the plugin"); };
}

template <class Result, class... Arguments>
void make_throw_a_number(Result (*&slot)(Arguments...)) {
  slot = [](Arguments...) -> Result { throw 42; };
}

template <class... Slots>
void make_all_throw(Slots&... slots) {
  (make_throw(slots), ...);
}

// Opens something without a handle of its own, whatever it is.
template <class File>
void open_anything(const TF_Filesystem*, const char*, File*, TF_Status*) {}

template <class Closed>
void end_quietly(Closed*) {}

struct Plan {
  TF_FilesystemOps filesystem = {};
  TF_RandomAccessFileOps reader = {};
  TF_WritableFileOps writer = {};
  TF_ReadOnlyMemoryRegionOps region = {};

  Plan() {
    filesystem.init = [](TF_Filesystem*, TF_Status*) {};
    filesystem.cleanup = end_quietly<TF_Filesystem>;
    filesystem.new_random_access_file = open_anything<TF_RandomAccessFile>;
    filesystem.new_writable_file = open_anything<TF_WritableFile>;
    filesystem.new_read_only_memory_region_from_file = open_anything<TF_ReadOnlyMemoryRegion>;
    reader.cleanup = end_quietly<TF_RandomAccessFile>;
    reader.read = [](const TF_RandomAccessFile*, uint64_t, size_t, char*, TF_Status*) -> int64_t {
      return 0;
    };
    writer.cleanup = end_quietly<TF_WritableFile>;
    writer.close = [](const TF_WritableFile*, TF_Status*) {};
    writer.append = [](const TF_WritableFile*, const char*, size_t, TF_Status*) {};
    region.cleanup = end_quietly<TF_ReadOnlyMemoryRegion>;
    region.data = [](const TF_ReadOnlyMemoryRegion*) -> const void* { return "bytes"; };
    region.length = [](const TF_ReadOnlyMemoryRegion*) -> uint64_t { return 5; };
  }
};

Plan throws() {
  Plan plan;
  auto& fs = plan.filesystem;
  make_all_throw(fs.new_appendable_file, fs.create_dir, fs.recursively_create_dir, fs.delete_file,
                 fs.delete_dir, fs.delete_recursively, fs.rename_file, fs.copy_file,
                 fs.path_exists, fs.paths_exist, fs.stat, fs.is_directory, fs.get_file_size,
                 fs.get_children, fs.get_matching_paths, fs.flush_caches, fs.start_transaction,
                 fs.get_transaction_for_path, fs.get_filesystem_configuration,
                 fs.set_filesystem_configuration, fs.get_filesystem_configuration_option,
                 fs.set_filesystem_configuration_option);
  make_throw_a_number(fs.create_dir);
  make_all_throw(plan.reader.read, plan.writer.append, plan.writer.tell, plan.writer.flush,
                 plan.writer.sync, plan.writer.close, plan.region.data);
  return plan;
}

Plan names() {
  Plan plan = throws();
  make_throw(plan.filesystem.translate_name);
  return plan;
}

Plan ends() {
  Plan plan;
  make_all_throw(plan.filesystem.cleanup, plan.reader.cleanup, plan.writer.cleanup,
                 plan.region.cleanup);
  return plan;
}

Plan starts() {
  Plan plan;
  make_throw(plan.filesystem.init);
  return plan;
}

void* allocate(size_t size) { return std::calloc(1, size); }

template <class Value>
Value* copied(const Value& value) {
  return static_cast<Value*>(std::memcpy(allocate(sizeof(Value)), &value, sizeof(Value)));
}

// An option that is whole except for what `key` says.
TF_Filesystem_Option option_with(const char* key) {
  const auto is = [key](const char* oddity) { return std::strcmp(key, oddity) == 0; };
  TF_Filesystem_Option_Value value = {};
  value.type_tag = is("bad-tag") ? 7 : TF_Filesystem_Option_Type_Buffer;
  value.num_values = is("negative") ? -3 : 1;
  value.values = is("no-values") ? nullptr : copied(TF_Filesystem_Option_Value_Union{});
  if (is("no-bytes")) value.values->buffer_val.buf_length = 5;
  TF_Filesystem_Option option = {};
  option.name = is("no-name") ? nullptr : strdup(key);
  option.value = is("no-value") ? nullptr : copied(value);
  if (is("no-value")) std::free(value.values);
  return option;
}

Plan odd() {
  Plan plan;
  plan.filesystem.stat = [](const TF_Filesystem*, const char*, TF_FileStatistics* found,
                            TF_Status*) {
    *found = {3, -1, false};
    std::memset(&found->is_directory, 2, 1);  // no bool
  };
  plan.filesystem.get_filesystem_configuration =
      [](const TF_Filesystem*, TF_Filesystem_Option**, int* count, TF_Status*) { *count = 2; };
  plan.filesystem.get_filesystem_configuration_option =
      [](const TF_Filesystem*, const char* key, TF_Filesystem_Option** option, TF_Status*) {
        if (std::strcmp(key, "nothing") != 0) *option = copied(option_with(key));
      };
  plan.filesystem.start_transaction = [](const TF_Filesystem*, TF_TransactionToken**,
                                         TF_Status*) { return 0; };
  plan.filesystem.get_transaction_for_path = [](const TF_Filesystem*, const char*,
                                                TF_TransactionToken**, TF_Status*) { return -1; };
  plan.region.data = [](const TF_ReadOnlyMemoryRegion*) -> const void* { return nullptr; };
  return plan;
}

Plan odd_count() {
  Plan plan;
  plan.filesystem.get_filesystem_configuration =
      [](const TF_Filesystem*, TF_Filesystem_Option**, int* count, TF_Status*) { *count = -1; };
  plan.region.length = [](const TF_ReadOnlyMemoryRegion*) -> uint64_t { return 0; };
  return plan;
}

int list_three(const TF_Filesystem*, const char*, char*** entries, TF_Status*) {
  *entries = static_cast<char**>(allocate(3 * sizeof(char*)));
  for (int i = 0; i < 3; ++i) (*entries)[i] = strdup("entry");
  return 3;
}

Plan lists() {
  Plan plan;
  plan.filesystem.translate_name = [](const TF_Filesystem*, const char* path) {
    return strdup(path);
  };
  plan.filesystem.get_children = list_three;
  plan.filesystem.get_matching_paths = list_three;
  plan.filesystem.path_exists = [](const TF_Filesystem*, const char*, TF_Status*) {};
  plan.filesystem.get_filesystem_configuration_option =
      [](const TF_Filesystem*, const char* key, TF_Filesystem_Option** option, TF_Status*) {
        *option = copied(option_with(key));
      };
  plan.filesystem.start_transaction = [](const TF_Filesystem*, TF_TransactionToken** token,
                                         TF_Status*) {
    static char made;
    *token = reinterpret_cast<TF_TransactionToken*>(&made);
    return 0;
  };
  plan.filesystem.decode_transaction_token = [](const TF_Filesystem*,
                                                const TF_TransactionToken*) {
    return strdup("a transaction");
  };
  return plan;
}

void fail(const char* number, TF_Status* status) {
  TF_SetStatus(status, static_cast<TF_Code>(std::atoi(number)), "told to fail");
}

const char* first_number(const char* path) { return path + std::strcspn(path, "0123456789"); }

template <class Result, class... Rest>
void make_fail(Result (*&slot)(const TF_Filesystem*, const char*, Rest...)) {
  slot = [](const TF_Filesystem*, const char* path, Rest... rest) -> Result {
    fail(first_number(path), std::get<sizeof...(Rest) - 1>(std::tie(rest...)));
    return Result();
  };
}

template <class Result, class File, class... Rest>
void make_use_fail(Result (*&slot)(const File*, Rest...)) {
  slot = [](const File* file, Rest... rest) -> Result {
    const auto path = static_cast<const char*>(file->plugin_file);
    fail(first_number(path), std::get<sizeof...(Rest) - 1>(std::tie(rest...)));
    return Result();
  };
}

template <class File>
void open_or_fail(const TF_Filesystem*, const char* path, File* file, TF_Status* status) {
  if (std::strncmp(path, "/open/", 6) == 0) {
    file->plugin_file = strdup(path);
  } else {
    fail(first_number(path), status);
  }
}

template <class File>
void free_path(File* file) {
  std::free(file->plugin_file);
}

void fail_by_last_number(const TF_Filesystem*, const char* path, TF_Status* status) {
  fail(std::strrchr(path, '/') + 1, status);
}

template <class... Slots>
void make_all_fail(Slots&... slots) {
  (make_fail(slots), ...);
}

Plan fails() {
  Plan plan;
  auto& fs = plan.filesystem;
  make_all_fail(fs.new_read_only_memory_region_from_file, fs.create_dir, fs.recursively_create_dir,
                fs.delete_file, fs.delete_dir, fs.delete_recursively, fs.rename_file, fs.copy_file,
                fs.stat, fs.is_directory, fs.get_file_size, fs.get_children, fs.get_matching_paths,
                fs.get_filesystem_configuration_option);
  fs.path_exists = fail_by_last_number;
  fs.paths_exist = [](const TF_Filesystem* filesystem, char** paths, int count,
                      TF_Status** statuses) {
    for (int i = 0; i < count; ++i) fail_by_last_number(filesystem, paths[i], statuses[i]);
    return false;
  };
  fs.new_random_access_file = open_or_fail<TF_RandomAccessFile>;
  fs.new_writable_file = fs.new_appendable_file = open_or_fail<TF_WritableFile>;
  plan.reader.cleanup = free_path<TF_RandomAccessFile>;
  plan.writer.cleanup = free_path<TF_WritableFile>;
  make_use_fail(plan.reader.read);
  make_use_fail(plan.writer.append);
  make_use_fail(plan.writer.tell);
  make_use_fail(plan.writer.flush);
  make_use_fail(plan.writer.sync);
  make_use_fail(plan.writer.close);
  return plan;
}

void free_memory(void* memory) {
  std::free(memory);
#ifdef THROWING_FREE
  throw std::runtime_error("thrown by free");
#endif
}

TF_FilesystemPluginOps hand_over(const char* scheme, const Plan& plan) {
  TF_FilesystemPluginOps ops = {};
  TF_SetFilesystemVersionMetadata(&ops);
  ops.scheme = strdup(scheme);
  ops.filesystem_ops = copied(plan.filesystem);
  ops.random_access_file_ops = copied(plan.reader);
  ops.writable_file_ops = copied(plan.writer);
  ops.read_only_memory_region_ops = copied(plan.region);
  return ops;
}

}  // namespace

extern "C" void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  info->plugin_memory_allocate = allocate;
  info->plugin_memory_free = free_memory;
  const std::pair<const char*, Plan> schemes[] = {
      {"throws", throws()}, {"names", names()},         {"ends", ends()},   {"starts", starts()},
      {"odd", odd()},       {"odd.count", odd_count()}, {"lists", lists()}, {"fails", fails()}};
  info->num_schemes = std::size(schemes);
  info->ops = static_cast<TF_FilesystemPluginOps*>(
      allocate(info->num_schemes * sizeof(TF_FilesystemPluginOps)));
  for (size_t i = 0; i < std::size(schemes); ++i) {
    info->ops[i] = hand_over(schemes[i].first, schemes[i].second);
  }
}
