/* Local files, by a plugin that looks at nothing: copy_file empties its target before it reads its
 * source, and rename_file copies and then deletes. TensorFlow's own plugin copies like that.
 *
 * Two schemes, `care` and `less`, of the same functions; with WITH_STATE each has a state of its own. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin_parts.h"

static void start(TF_Filesystem* filesystem, TF_Status* status) {
  (void)status;
#ifdef WITH_STATE
  filesystem->plugin_filesystem = malloc(1);
#else
  (void)filesystem;
#endif
}

static void end(TF_Filesystem* filesystem) { free(filesystem->plugin_filesystem); }

static void report(TF_Status* status, bool is_fine, const char* path) {
  TF_SetStatusFromIOError(status, is_fine ? 0 : errno, path);
}

static void open_reader(const TF_Filesystem* filesystem, const char* path,
                        TF_RandomAccessFile* file, TF_Status* status) {
  (void)filesystem;
  file->plugin_file = fopen(path, "rb");
  report(status, file->plugin_file != NULL, path);
}

static void end_reader(TF_RandomAccessFile* file) { fclose(file->plugin_file); }

static int64_t read_file(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
                         TF_Status* status) {
  fseek(file->plugin_file, (long)offset, SEEK_SET);
  const size_t got = fread(buffer, 1, n, file->plugin_file);
  TF_SetStatus(status, got < n ? TF_OUT_OF_RANGE : TF_OK, "the end");
  return (int64_t)got;
}

static void open_writer(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file,
                        TF_Status* status) {
  (void)filesystem;
  file->plugin_file = fopen(path, "wb");
  report(status, file->plugin_file != NULL, path);
}

static void end_writer(TF_WritableFile* file) { (void)file; }

static void append(const TF_WritableFile* file, const char* buffer, size_t n, TF_Status* status) {
  report(status, fwrite(buffer, 1, n, file->plugin_file) == n, "append");
}

static void close_writer(const TF_WritableFile* file, TF_Status* status) {
  report(status, fclose(file->plugin_file) == 0, "close");
}

static void copy_file(const TF_Filesystem* filesystem, const char* source, const char* target,
                      TF_Status* status) {
  (void)filesystem;
  FILE* to = fopen(target, "wb");
  FILE* from = fopen(source, "rb");
  report(status, to != NULL && from != NULL, source);
  for (int c = from == NULL ? EOF : getc(from); c != EOF && to != NULL; c = getc(from)) putc(c, to);
  if (to != NULL) fclose(to);
  if (from != NULL) fclose(from);
}

static void delete_file(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem;
  report(status, unlink(path) == 0, path);
}

static void rename_file(const TF_Filesystem* filesystem, const char* source, const char* target,
                        TF_Status* status) {
  copy_file(filesystem, source, target, status);
  delete_file(filesystem, source, status);
}

static void stat_path(const TF_Filesystem* filesystem, const char* path,
                      TF_FileStatistics* statistics, TF_Status* status) {
  (void)filesystem;
  struct stat facts;
  const bool is_there = stat(path, &facts) == 0;
  report(status, is_there, path);
  if (is_there) *statistics = (TF_FileStatistics){facts.st_size, 1, S_ISDIR(facts.st_mode)};
}

TF_CAPI_EXPORT void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  const TF_FilesystemOps filesystem = {.init = start,
                                       .cleanup = end,
                                       .new_random_access_file = open_reader,
                                       .new_writable_file = open_writer,
                                       .delete_file = delete_file,
                                       .rename_file = rename_file,
                                       .copy_file = copy_file,
                                       .stat = stat_path};
  const TF_RandomAccessFileOps reader = {.cleanup = end_reader, .read = read_file};
  const TF_WritableFileOps writer = {
      .cleanup = end_writer, .append = append, .close = close_writer};
  offer(info, "care", &filesystem, &reader, &writer, NULL);
  offer(info, "less", &filesystem, &reader, &writer, NULL);
}
