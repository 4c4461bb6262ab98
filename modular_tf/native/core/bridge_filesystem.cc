// The slots of a filesystem that TensorFlow calls with paths.
#include <cstdlib>
#include <cstring>

#include "bridge_calls.h"
#include "bridge_tables.h"

namespace mtf::bridge {
namespace {

bool ask_path(const char* operation, const char* path, const char* other, Answer& answer,
              TF_Status* status) {
  return ask(status, answer, [&] { mtf_upcall_path(operation, path, other, &answer); });
}

// A slot of the shape (filesystem, path, status).
bool ask_path(const char* operation, const char* path, TF_Status* status) {
  Answer answer;
  return ask_path(operation, path, nullptr, answer, status);
}

// Turns names into an array whose strings TensorFlow frees one by one.
int hand_over(const mtf_strings& names, char*** entries, TF_Status* status) {
  *entries = nullptr;
  if (names.count == 0) return 0;
  auto** array = static_cast<char**>(std::calloc(names.count, sizeof(char*)));
  const char* name = names.bytes;
  int64_t done = 0;
  for (; array != nullptr && done < names.count; ++done) {
    array[done] = strdup(name);
    if (array[done] == nullptr) break;
    name += std::strlen(name) + 1;
  }
  if (done == names.count) {
    *entries = array;
    return static_cast<int>(done);
  }
  while (done > 0) std::free(array[--done]);
  std::free(array);
  set_status(status, TF_RESOURCE_EXHAUSTED, "modular_tf: no memory for the names");
  return -1;
}

int ask_names(const char* operation, const char* path, char*** entries, TF_Status* status) {
  Answer answer;
  *entries = nullptr;
  if (!ask_path(operation, path, nullptr, answer, status)) return -1;
  return hand_over(answer.names, entries, status);
}

void init(TF_Filesystem*, TF_Status* status) { set_status(status, TF_OK, ""); }

void cleanup(TF_Filesystem*) {}

void create_dir(const TF_Filesystem*, const char* path, TF_Status* status) {
  ask_path("create_dir", path, status);
}

void recursively_create_dir(const TF_Filesystem*, const char* path, TF_Status* status) {
  ask_path("recursively_create_dir", path, status);
}

void delete_file(const TF_Filesystem*, const char* path, TF_Status* status) {
  ask_path("delete_file", path, status);
}

void delete_dir(const TF_Filesystem*, const char* path, TF_Status* status) {
  ask_path("delete_dir", path, status);
}

void delete_recursively(const TF_Filesystem*, const char* path, uint64_t* files, uint64_t* dirs,
                        TF_Status* status) {
  Answer answer;
  answer.numbers[1] = 1;  // where the walk cannot start
  ask_path("delete_recursively", path, nullptr, answer, status);
  *files = static_cast<uint64_t>(answer.numbers[0]);
  *dirs = static_cast<uint64_t>(answer.numbers[1]);
}

void rename_file(const TF_Filesystem*, const char* source, const char* target,
                 TF_Status* status) {
  Answer answer;
  ask_path("rename_file", source, target, answer, status);
}

void copy_file(const TF_Filesystem*, const char* source, const char* target, TF_Status* status) {
  Answer answer;
  ask_path("copy_file", source, target, answer, status);
}

void path_exists(const TF_Filesystem*, const char* path, TF_Status* status) {
  ask_path("path_exists", path, status);
}

void stat(const TF_Filesystem*, const char* path, TF_FileStatistics* stats, TF_Status* status) {
  Answer answer;
  if (!ask_path("stat", path, nullptr, answer, status)) return;
  *stats = {answer.numbers[0], answer.numbers[1], answer.numbers[2] != 0};
}

bool is_directory(const TF_Filesystem*, const char* path, TF_Status* status) {
  return ask_path("is_directory", path, status);
}

int64_t get_file_size(const TF_Filesystem*, const char* path, TF_Status* status) {
  Answer answer;
  return ask_path("get_file_size", path, nullptr, answer, status) ? answer.numbers[0] : -1;
}

// The whole URI: TensorFlow's own rule would drop the scheme, by which Python finds the filesystem.
char* translate_name(const TF_Filesystem*, const char* uri) { return strdup(uri); }

int get_children(const TF_Filesystem*, const char* path, char*** entries, TF_Status* status) {
  return ask_names("get_children", path, entries, status);
}

int get_matching_paths(const TF_Filesystem*, const char* glob, char*** entries,
                       TF_Status* status) {
  return ask_names("get_matching_paths", glob, entries, status);
}

void flush_caches(const TF_Filesystem*) {}  // TensorFlow names no scheme here

// Lets TensorFlow, which frees each table, have a copy of its own.
template <class Table>
Table* lent(const Table& table) {
  auto* copy = static_cast<Table*>(std::malloc(sizeof(Table)));
  if (copy != nullptr) *copy = table;
  return copy;
}

TF_FilesystemOps_V221 filesystem_table() {
  TF_FilesystemOps_V221 table = {};
  table.init = init;
  table.cleanup = cleanup;
  table.new_random_access_file = open_reader;
  table.new_writable_file = open_writer;
  table.new_appendable_file = open_appender;
  table.new_read_only_memory_region_from_file = open_region;
  table.create_dir = create_dir;
  table.recursively_create_dir = recursively_create_dir;
  table.delete_file = delete_file;
  table.delete_dir = delete_dir;
  table.delete_recursively = delete_recursively;
  table.rename_file = rename_file;
  table.copy_file = copy_file;
  table.path_exists = path_exists;
  table.stat = stat;
  table.is_directory = is_directory;
  table.get_file_size = get_file_size;
  table.translate_name = translate_name;
  table.get_children = get_children;
  table.get_matching_paths = get_matching_paths;
  table.flush_caches = flush_caches;
  return table;
}

}  // namespace

void fill_tables(TF_FilesystemPluginOps* entry, const char* scheme) {
  TF_SetFilesystemVersionMetadata(entry);
  entry->scheme = strdup(scheme);
  entry->filesystem_ops_size = kCommonTable;
  entry->filesystem_ops = lent(filesystem_table());
  entry->random_access_file_ops = lent(reader_table());
  entry->writable_file_ops = lent(writer_table());
  entry->read_only_memory_region_ops = lent(region_table());
}

}  // namespace mtf::bridge
