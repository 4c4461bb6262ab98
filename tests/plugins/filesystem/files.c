#define _POSIX_C_SOURCE 200809L
#include "files.h"

#include <stdlib.h>
#include <string.h>

#include "ledger.h"
#include "store.h"

/* An open file: all three kinds keep the same facts. */
typedef struct open_file {
  store* store;
  char* path;
  bool closed;
  void* bytes; /* of a region: its own copy of the content */
  uint64_t size;
} open_file;

void set_outcome(TF_Status* status, TF_Code code, const char* path) {
  TF_SetStatus(status, code, code == TF_OK ? "" : path);
}

static open_file* new_file(const TF_Filesystem* filesystem, const char* path) {
  open_file* file = calloc(1, sizeof(open_file));
  if (file == NULL || (file->path = strdup(path)) == NULL) abort();
  file->store = filesystem->plugin_filesystem;
  ledger_add(&fixture_ledger.files_opened, 1);
  return file;
}

static void end_file(open_file* file) {
  ledger_add(&fixture_ledger.files_cleaned_up, 1);
  free(file->bytes);
  free(file->path);
  free(file);
}

/* ---- Readers ---- */

static TF_Code check_file(store* store, const char* path, TF_FileStatistics* statistics) {
  TF_Code code = store_stat(store, path, statistics);
  return code == TF_OK && statistics->is_directory ? TF_FAILED_PRECONDITION : code;
}

void open_random_access_file(const TF_Filesystem* filesystem, const char* path,
                             TF_RandomAccessFile* file, TF_Status* status) {
  TF_FileStatistics statistics;
  TF_Code code = check_file(filesystem->plugin_filesystem, path, &statistics);
  if (code == TF_OK) file->plugin_file = new_file(filesystem, path);
  set_outcome(status, code, path);
}

static void clean_up_reader(TF_RandomAccessFile* file) { end_file(file->plugin_file); }

static int64_t read_file(const TF_RandomAccessFile* reader, uint64_t offset, size_t n, char* buffer,
                         TF_Status* status) {
  const open_file* file = reader->plugin_file;
  TF_Code code;
  int64_t count = store_read(file->store, file->path, offset, n, buffer, &code);
  set_outcome(status, code, file->path);
  return count;
}

/* ---- Writers ---- */

static void open_writer(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file,
                        bool truncate, TF_Status* status) {
  TF_Code code = store_prepare_file(filesystem->plugin_filesystem, path, truncate);
  if (code == TF_OK) file->plugin_file = new_file(filesystem, path);
  set_outcome(status, code, path);
}

void open_writable_file(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file,
                        TF_Status* status) {
  open_writer(filesystem, path, file, true, status);
}

void open_appendable_file(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file,
                          TF_Status* status) {
  open_writer(filesystem, path, file, false, status);
}

static void clean_up_writer(TF_WritableFile* file) { end_file(file->plugin_file); }

static void append_to_file(const TF_WritableFile* writer, const char* buffer, size_t n,
                           TF_Status* status) {
  const open_file* file = writer->plugin_file;
  TF_Code code = file->closed ? TF_FAILED_PRECONDITION
                              : store_append(file->store, file->path, buffer, n);
  set_outcome(status, code, file->path);
}

static int64_t tell(const TF_WritableFile* writer, TF_Status* status) {
  const open_file* file = writer->plugin_file;
  TF_FileStatistics statistics;
  TF_Code code = store_stat(file->store, file->path, &statistics);
  set_outcome(status, code, file->path);
  return code == TF_OK ? statistics.length : -1;
}

static void do_nothing(const TF_WritableFile* writer, TF_Status* status) {
  (void)writer;
  set_outcome(status, TF_OK, "");
}

static void close_writer(const TF_WritableFile* writer, TF_Status* status) {
  open_file* file = writer->plugin_file;
  ledger_add(&fixture_ledger.writers_closed, 1);
  set_outcome(status, file->closed ? TF_FAILED_PRECONDITION : TF_OK, file->path);
  file->closed = true;
}

/* ---- Regions ---- */

void open_memory_region(const TF_Filesystem* filesystem, const char* path,
                        TF_ReadOnlyMemoryRegion* region, TF_Status* status) {
  store* store = filesystem->plugin_filesystem;
  TF_FileStatistics statistics;
  TF_Code code = check_file(store, path, &statistics);
  if (code == TF_OK && statistics.length == 0) code = TF_INVALID_ARGUMENT;
  if (code == TF_OK) {
    open_file* file = region->plugin_memory_region = new_file(filesystem, path);
    file->size = (uint64_t)statistics.length;
    file->bytes = aligned_alloc(64, (file->size + 63) / 64 * 64);
    if (file->bytes == NULL) abort();
    store_read(store, path, 0, file->size, file->bytes, &code);
  }
  set_outcome(status, code, path);
}

static void clean_up_region(TF_ReadOnlyMemoryRegion* region) {
  end_file(region->plugin_memory_region);
}

static const void* region_data(const TF_ReadOnlyMemoryRegion* region) {
  return ((const open_file*)region->plugin_memory_region)->bytes;
}

static uint64_t region_length(const TF_ReadOnlyMemoryRegion* region) {
  return ((const open_file*)region->plugin_memory_region)->size;
}

const TF_RandomAccessFileOps good_random_access_file_ops = {
    .cleanup = clean_up_reader,
    .read = read_file,
};
const TF_WritableFileOps good_writable_file_ops = {
    .cleanup = clean_up_writer,
    .append = append_to_file,
    .tell = tell,
    .flush = do_nothing,
    .sync = do_nothing,
    .close = close_writer,
};
const TF_ReadOnlyMemoryRegionOps good_read_only_memory_region_ops = {
    .cleanup = clean_up_region,
    .data = region_data,
    .length = region_length,
};
