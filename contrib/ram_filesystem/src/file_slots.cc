// Open files: readers, writers and regions.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "fork_gate.h"
#include "slots.h"

namespace ram {
namespace {

// What any open file keeps: the bytes even if the name is deleted, and what messages need.
struct OpenFile {
  FilePointer content;
  std::shared_ptr<Account> account;
  std::string path;

  void say(Fault fault, TF_Status* status) const {
    report(fault, *account, path.c_str(), status);
  }
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

OpenFile opened(const Instance& instance, const char* path, FilePointer content) {
  return {std::move(content), instance.account, path};
}

void new_random_access_file(const TF_Filesystem* filesystem, const char* path,
                            TF_RandomAccessFile* file, TF_Status* status) {
  const Instance& instance = instance_of(filesystem);
  const Fault fault = caught([&] {
    FilePointer content;
    const Fault found = instance.tree.open_file(path, content);
    if (found == Fault::kNone) file->plugin_file = new OpenFile(opened(instance, path, content));
    return found;
  });
  report(fault, *instance.account, path, status);
}

void open_writer(const TF_Filesystem* filesystem, const char* path, bool anew,
                 TF_WritableFile* file, TF_Status* status) {
  Instance& instance = instance_of(filesystem);
  const Fault fault = caught([&] {
    FilePointer content;
    const Fault made = instance.tree.create_file(path, anew, content);
    if (made == Fault::kNone) file->plugin_file = new Writer(opened(instance, path, content));
    return made;
  });
  report(fault, *instance.account, path, status);
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
  const Instance& instance = instance_of(filesystem);
  const Fault fault = caught([&] {
    FilePointer content;
    const Fault found = instance.tree.open_file(path, content);
    if (found != Fault::kNone) return found;
    Snapshot snapshot = content->snapshot();
    if (snapshot.length == 0) return Fault::kEmptyFile;
    region->plugin_memory_region = new Region{std::move(snapshot)};
    return Fault::kNone;
  });
  report(fault, *instance.account, path, status);
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
  reader.say(got < n ? Fault::kEndOfFile : Fault::kNone, status);
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
  writer.say(writer.state(), status);
}

// Appends go to the end, so that is where the position always is.
int64_t writer_tell(const TF_WritableFile* file, TF_Status* status) {
  const Writer& writer = writer_of(file);
  writer.say(writer.state(), status);
  if (writer.state() != Fault::kNone) return -1;
  return static_cast<int64_t>(writer.content->snapshot().length);
}

// Appended bytes are there for everybody at once: nothing is left to flush or to sync.
void writer_flush(const TF_WritableFile* file, TF_Status* status) {
  const Writer& writer = writer_of(file);
  writer.say(writer.state(), status);
}

void writer_close(const TF_WritableFile* file, TF_Status* status) {
  Writer& writer = writer_of(file);
  writer.say(writer.state(), status);
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

}  // namespace

void fill_file_slots(TF_FilesystemOps& ops) {
  ops.new_random_access_file = in_call<new_random_access_file>;
  ops.new_writable_file = in_call<new_writable_file>;
  ops.new_appendable_file = in_call<new_appendable_file>;
  ops.new_read_only_memory_region_from_file = in_call<new_region>;
}

TF_RandomAccessFileOps random_access_file_slots() {
  return {in_call<reader_cleanup>, in_call<reader_read>};
}

TF_WritableFileOps writable_file_slots() {
  return {in_call<writer_cleanup>, in_call<writer_append>, in_call<writer_tell>,
          in_call<writer_flush>,   in_call<writer_flush>,  in_call<writer_close>};
}

TF_ReadOnlyMemoryRegionOps read_only_region_slots() {
  return {in_call<region_cleanup>, in_call<region_data>, in_call<region_length>};
}

}  // namespace ram
