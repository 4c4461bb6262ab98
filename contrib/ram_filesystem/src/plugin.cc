// The functions that go into the host's tables, and the entry point: one scheme and its tables.
//
// What each function must do is said in modular_tf/filesystem_ops.h and modular_tf/file_ops.h. A
// registration has a tree of its own: two registrations do not see each other's files.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "fork_gate.h"
#include "modular_tf/filesystem.h"
#include "tree.h"

namespace ram {
namespace {

// -- faults as statuses ---------------------------------------------------------------------------

struct Meaning {
  TF_Code code;
  const char* text;
};

// In the order of Fault.
constexpr std::array<Meaning, 13> kMeanings{{
    {TF_OK, ""},
    {TF_NOT_FOUND, "no such file or directory"},
    {TF_FAILED_PRECONDITION, "a parent is a file, not a directory"},
    {TF_FAILED_PRECONDITION, "is a directory"},
    {TF_FAILED_PRECONDITION, "not a directory"},
    {TF_ALREADY_EXISTS, "exists already"},
    {TF_FAILED_PRECONDITION, "directory not empty"},
    {TF_FAILED_PRECONDITION, "the root cannot be deleted"},
    {TF_INVALID_ARGUMENT, "an empty file has no memory region"},
    {TF_OUT_OF_RANGE, "end of file"},
    {TF_FAILED_PRECONDITION, "the file is closed"},
    {TF_RESOURCE_EXHAUSTED, "out of memory"},
    {TF_INTERNAL, "unexpected C++ exception"},
}};
static_assert(kMeanings.size() == static_cast<size_t>(Fault::kInternal) + 1);

const Meaning& meaning_of(Fault fault) { return kMeanings[static_cast<size_t>(fault)]; }

// The message is "subject; text of the fault".
void report(Fault fault, std::string_view subject, TF_Status* status) {
  const Meaning& meaning = meaning_of(fault);
  if (fault == Fault::kNone) return TF_SetStatus(status, TF_OK, "");
  try {
    TF_SetStatus(status, meaning.code, std::string(subject).append("; ").append(meaning.text).c_str());
  } catch (const std::bad_alloc&) {
    TF_SetStatus(status, meaning.code, meaning.text);
  }
}

Tree& tree_of(const TF_Filesystem* filesystem) {
  return *static_cast<Tree*>(filesystem->plugin_filesystem);
}

// -- open files: readers, writers and regions -----------------------------------------------------

// What any open file keeps: the bytes even if the name is deleted, and the path for messages.
struct OpenFile {
  FilePointer content;
  std::string path;
};

struct Writer : OpenFile {
  explicit Writer(OpenFile file) : OpenFile(std::move(file)) {}

  // The first append that failed stays: a file with a hole must not look complete at its close.
  Fault failure = Fault::kNone;
  bool closed = false;

  Fault state() const { return closed ? Fault::kClosed : failure; }
};

// The bytes as they were when the region was made; later appends do not show in it.
struct Region {
  Snapshot snapshot;
};

Writer& writer_of(const TF_WritableFile* file) { return *static_cast<Writer*>(file->plugin_file); }

const Region& region_of(const TF_ReadOnlyMemoryRegion* region) {
  return *static_cast<const Region*>(region->plugin_memory_region);
}

void new_random_access_file(const TF_Filesystem* filesystem, const char* path,
                            TF_RandomAccessFile* file, TF_Status* status) {
  const Fault fault = caught([&] {
    FilePointer content;
    const Fault found = tree_of(filesystem).open_file(path, content);
    if (found == Fault::kNone) file->plugin_file = new OpenFile{content, path};
    return found;
  });
  report(fault, path, status);
}

void open_writer(const TF_Filesystem* filesystem, const char* path, bool anew,
                 TF_WritableFile* file, TF_Status* status) {
  const Fault fault = caught([&] {
    FilePointer content;
    const Fault made = tree_of(filesystem).create_file(path, anew, content);
    if (made == Fault::kNone) file->plugin_file = new Writer({content, path});
    return made;
  });
  report(fault, path, status);
}

void new_writable_file(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file,
                       TF_Status* status) {
  open_writer(filesystem, path, true, file, status);
}

void new_appendable_file(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file,
                         TF_Status* status) {
  open_writer(filesystem, path, false, file, status);
}

void new_region(const TF_Filesystem* filesystem, const char* path,
                TF_ReadOnlyMemoryRegion* region, TF_Status* status) {
  const Fault fault = caught([&] {
    FilePointer content;
    const Fault found = tree_of(filesystem).open_file(path, content);
    if (found != Fault::kNone) return found;
    Snapshot snapshot = content->snapshot();
    if (snapshot.length == 0) return Fault::kEmptyFile;
    region->plugin_memory_region = new Region{std::move(snapshot)};
    return Fault::kNone;
  });
  report(fault, path, status);
}

void reader_cleanup(TF_RandomAccessFile* file) {
  delete static_cast<OpenFile*>(file->plugin_file);
  file->plugin_file = nullptr;
}

// One read sees the file as it is at one moment; the next one sees what was appended since.
int64_t reader_read(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
                    TF_Status* status) {
  const auto& reader = *static_cast<const OpenFile*>(file->plugin_file);
  const Snapshot now = reader.content->snapshot();
  const size_t there = offset < now.length ? now.length - static_cast<size_t>(offset) : 0;
  const size_t got = std::min(n, there);
  if (got > 0) std::memcpy(buffer, now.buffer->data() + offset, got);
  report(got < n ? Fault::kEndOfFile : Fault::kNone, reader.path, status);
  return static_cast<int64_t>(got);
}

void writer_cleanup(TF_WritableFile* file) {
  delete &writer_of(file);
  file->plugin_file = nullptr;
}

void writer_append(const TF_WritableFile* file, const char* buffer, size_t n, TF_Status* status) {
  Writer& writer = writer_of(file);
  if (writer.state() == Fault::kNone) {
    writer.failure = caught([&] { return writer.content->append(buffer, n); });
  }
  report(writer.state(), writer.path, status);
}

// Appends go to the end, so that is where the position always is.
int64_t writer_tell(const TF_WritableFile* file, TF_Status* status) {
  const Writer& writer = writer_of(file);
  report(writer.state(), writer.path, status);
  if (writer.state() != Fault::kNone) return -1;
  return static_cast<int64_t>(writer.content->snapshot().length);
}

// Appended bytes are there for everybody at once: nothing is left to flush or to sync.
void writer_flush(const TF_WritableFile* file, TF_Status* status) {
  const Writer& writer = writer_of(file);
  report(writer.state(), writer.path, status);
}

void writer_close(const TF_WritableFile* file, TF_Status* status) {
  Writer& writer = writer_of(file);
  report(writer.state(), writer.path, status);
  writer.closed = true;
}

void region_cleanup(TF_ReadOnlyMemoryRegion* region) {
  delete &region_of(region);
  region->plugin_memory_region = nullptr;
}

const void* region_data(const TF_ReadOnlyMemoryRegion* region) {
  return region_of(region).snapshot.buffer->data();
}

uint64_t region_length(const TF_ReadOnlyMemoryRegion* region) {
  return region_of(region).snapshot.length;
}

// -- operations on names --------------------------------------------------------------------------

// One operation of the tree on one path.
void apply(const TF_Filesystem* filesystem, const char* path,
           Fault (Tree::*operation)(std::string_view), TF_Status* status) {
  const Fault fault = caught([&] { return (tree_of(filesystem).*operation)(path); });
  report(fault, path, status);
}

// One operation of the tree on two paths; the message names both.
void apply(const TF_Filesystem* filesystem, const char* source, const char* target,
           Fault (Tree::*operation)(std::string_view, std::string_view), TF_Status* status) {
  std::string both;
  const Fault fault = caught([&] {
    both.append(source).append(" -> ").append(target);
    return (tree_of(filesystem).*operation)(source, target);
  });
  report(fault, both, status);
}

Fault describe(const TF_Filesystem* filesystem, const char* path, Facts& facts) {
  return caught([&] { return tree_of(filesystem).describe(path, facts); });
}

void init(TF_Filesystem* filesystem, TF_Status* status) {
  const Fault fault = caught([&] {
    if (!watch_forks()) return Fault::kNoMemory;
    filesystem->plugin_filesystem = new Tree();
    return Fault::kNone;
  });
  TF_SetStatus(status, meaning_of(fault).code, meaning_of(fault).text);
}

void cleanup(TF_Filesystem* filesystem) {
  delete static_cast<Tree*>(filesystem->plugin_filesystem);
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
  const Fault fault = caught([&] { return tree_of(filesystem).delete_tree(path); });
  *undeleted_files = 0;
  *undeleted_dirs = fault == Fault::kNone ? 0 : 1;
  report(fault, path, status);
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
  report(describe(filesystem, path, facts), path, status);
}

// `statuses` may be NULL: then only the answer for all together is wanted.
bool paths_exist(const TF_Filesystem* filesystem, char** paths, int num_files,
                 TF_Status** statuses) {
  std::vector<Fault> faults;
  const Fault failure = caught([&] {
    const std::vector<std::string_view> views(paths, paths + num_files);
    faults = tree_of(filesystem).probe(views);
    return Fault::kNone;
  });
  bool all = true;
  for (int i = 0; i < num_files; ++i) {
    const Fault fault = failure == Fault::kNone ? faults[static_cast<size_t>(i)] : failure;
    all = all && fault == Fault::kNone;
    if (statuses != nullptr) report(fault, paths[i], statuses[i]);
  }
  return all;
}

void stat(const TF_Filesystem* filesystem, const char* path, TF_FileStatistics* statistics,
          TF_Status* status) {
  Facts facts;
  const Fault fault = describe(filesystem, path, facts);
  if (fault == Fault::kNone) *statistics = {facts.length, facts.mtime_nsec, facts.is_directory};
  report(fault, path, status);
}

// For a file the header would take OK and false, but TensorFlow reads only the status.
bool is_directory(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  Facts facts;
  Fault fault = describe(filesystem, path, facts);
  if (fault == Fault::kNone && !facts.is_directory) fault = Fault::kNotDirectory;
  report(fault, path, status);
  return fault == Fault::kNone;
}

int64_t get_file_size(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  Facts facts;
  Fault fault = describe(filesystem, path, facts);
  if (fault == Fault::kNone && facts.is_directory) fault = Fault::kIsDirectory;
  report(fault, path, status);
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
char** copied(const std::vector<std::string>& names) {
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
    const Fault listed = tree_of(filesystem).list(path, names);
    if (listed == Fault::kNone) *entries = copied(names);
    return listed;
  });
  report(fault, path, status);
  return fault == Fault::kNone ? static_cast<int>(names.size()) : -1;
}

// -- the tables -----------------------------------------------------------------------------------

// Memory that goes over to the host comes from malloc throughout the plugin.
void* allocate(size_t size) { return std::malloc(size); }
void release(void* memory) { std::free(memory); }

// The host frees each table by itself. NULL when out of memory, which the host refuses.
template <class Table>
Table* exported(const Table& table) {
  auto* copy = static_cast<Table*>(allocate(sizeof(Table)));
  if (copy != nullptr) std::memcpy(copy, &table, sizeof(Table));
  return copy;
}

// Left NULL on purpose:
// - get_matching_paths: the host walks with get_children and is_directory, and so would we;
// - flush_caches: the memory is the store, there is nothing in front of it;
// - transactions: single operations are atomic, groups of them are not;
// - configuration: there is nothing to configure.
TF_FilesystemOps filesystem_table() {
  TF_FilesystemOps ops{};
  ops.new_random_access_file = in_call<new_random_access_file>;
  ops.new_writable_file = in_call<new_writable_file>;
  ops.new_appendable_file = in_call<new_appendable_file>;
  ops.new_read_only_memory_region_from_file = in_call<new_region>;
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
  return ops;
}

}  // namespace
}  // namespace ram

using namespace ram;

extern "C" TF_CAPI_EXPORT void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  info->plugin_memory_allocate = allocate;
  info->plugin_memory_free = release;
  auto* ops = static_cast<TF_FilesystemPluginOps*>(std::calloc(1, sizeof(TF_FilesystemPluginOps)));
  info->ops = ops;
  info->num_schemes = ops == nullptr ? 0 : 1;
  if (ops == nullptr) return;
  TF_SetFilesystemVersionMetadata(ops);
  ops->scheme = strdup(MTF_RAM_SCHEME);
  ops->filesystem_ops = exported(filesystem_table());
  ops->random_access_file_ops = exported(
      TF_RandomAccessFileOps{in_call<reader_cleanup>, in_call<reader_read>});
  ops->writable_file_ops = exported(TF_WritableFileOps{
      in_call<writer_cleanup>, in_call<writer_append>, in_call<writer_tell>,
      in_call<writer_flush>, in_call<writer_flush>, in_call<writer_close>});
  ops->read_only_memory_region_ops = exported(TF_ReadOnlyMemoryRegionOps{
      in_call<region_cleanup>, in_call<region_data>, in_call<region_length>});
}
