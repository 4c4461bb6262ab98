/* A filesystem plugin of which everything fails that a path is given to, with the code that the path
 * names: fail://h/CODE, or fail://h/CODE/OTHER where path_exists fails with OTHER. Files are opened
 * by paths that begin with "open", and everything fails on them. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "modular_tf/filesystem.h"

static void fail(const char* code, TF_Status* status) {
  TF_SetStatus(status, (TF_Code)atoi(code), "told to fail");
}

static void start(TF_Filesystem* filesystem, TF_Status* status) { (void)filesystem, (void)status; }
static void clean_up(TF_Filesystem* filesystem) { (void)filesystem; }

static void* opened(const char* path, TF_Status* status) {
  if (strncmp(path, "/open", 5) == 0) return strdup(path + strlen("/open/"));
  fail(path + 1, status);
  return NULL;
}

static void open_reader(const TF_Filesystem* filesystem, const char* path,
                        TF_RandomAccessFile* file, TF_Status* status) {
  (void)filesystem;
  file->plugin_file = opened(path, status);
}

static int64_t read_file(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
                         TF_Status* status) {
  (void)offset, (void)n, (void)buffer;
  fail(file->plugin_file, status);
  return 0;
}

static void close_reader(TF_RandomAccessFile* file) { free(file->plugin_file); }

static void open_writer(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file,
                        TF_Status* status) {
  (void)filesystem;
  file->plugin_file = opened(path, status);
}

static void append(const TF_WritableFile* file, const char* data, size_t n, TF_Status* status) {
  (void)data, (void)n;
  fail(file->plugin_file, status);
}

static int64_t tell(const TF_WritableFile* file, TF_Status* status) {
  fail(file->plugin_file, status);
  return 0;
}

static void end_file(const TF_WritableFile* file, TF_Status* status) {
  fail(file->plugin_file, status);
}

static void close_writer(TF_WritableFile* file) { free(file->plugin_file); }

static void open_region(const TF_Filesystem* filesystem, const char* path,
                        TF_ReadOnlyMemoryRegion* region, TF_Status* status) {
  (void)filesystem, (void)region;
  fail(path + 1, status);
}

static void close_region(TF_ReadOnlyMemoryRegion* region) { (void)region; }
static const void* no_data(const TF_ReadOnlyMemoryRegion* region) { return region; }
static uint64_t no_length(const TF_ReadOnlyMemoryRegion* region) { return region == NULL; }

static void on_path(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem;
  fail(path + 1, status);
}

static void path_exists(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem;
  fail(strrchr(path, '/') + 1, status);
}

static void on_two_paths(const TF_Filesystem* filesystem, const char* source, const char* target,
                         TF_Status* status) {
  (void)target;
  on_path(filesystem, source, status);
}

static void delete_recursively(const TF_Filesystem* filesystem, const char* path, uint64_t* files,
                               uint64_t* dirs, TF_Status* status) {
  (void)files, (void)dirs;
  on_path(filesystem, path, status);
}

static bool paths_exist(const TF_Filesystem* filesystem, char** paths, int count,
                        TF_Status** statuses) {
  for (int i = 0; i < count; ++i) path_exists(filesystem, paths[i], statuses[i]);
  return false;
}

static void stat_path(const TF_Filesystem* filesystem, const char* path, TF_FileStatistics* found,
                      TF_Status* status) {
  (void)found;
  on_path(filesystem, path, status);
}

static bool is_directory(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  on_path(filesystem, path, status);
  return false;
}

static int64_t get_file_size(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  on_path(filesystem, path, status);
  return 0;
}

static int get_children(const TF_Filesystem* filesystem, const char* path, char*** entries,
                        TF_Status* status) {
  (void)entries;
  on_path(filesystem, path, status);
  return -1;
}

/* A pattern is not translated. */
static int get_matching_paths(const TF_Filesystem* filesystem, const char* glob, char*** entries,
                              TF_Status* status) {
  return get_children(filesystem, glob + strlen("fail://h"), entries, status);
}

static void get_option(const TF_Filesystem* filesystem, const char* key,
                       TF_Filesystem_Option** option, TF_Status* status) {
  (void)filesystem, (void)option;
  fail(key, status);
}

static void* heap(const void* bytes, size_t size) { return memcpy(malloc(size), bytes, size); }
static void* allocate(size_t size) { return malloc(size); }

void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  const TF_FilesystemOps filesystem = {.init = start,
                                       .cleanup = clean_up,
                                       .new_random_access_file = open_reader,
                                       .new_writable_file = open_writer,
                                       .new_appendable_file = open_writer,
                                       .new_read_only_memory_region_from_file = open_region,
                                       .create_dir = on_path,
                                       .recursively_create_dir = on_path,
                                       .delete_file = on_path,
                                       .delete_dir = on_path,
                                       .delete_recursively = delete_recursively,
                                       .rename_file = on_two_paths,
                                       .copy_file = on_two_paths,
                                       .path_exists = path_exists,
                                       .paths_exist = paths_exist,
                                       .stat = stat_path,
                                       .is_directory = is_directory,
                                       .get_file_size = get_file_size,
                                       .get_children = get_children,
                                       .get_matching_paths = get_matching_paths,
                                       .get_filesystem_configuration_option = get_option};
  const TF_RandomAccessFileOps reader = {.cleanup = close_reader, .read = read_file};
  const TF_WritableFileOps writer = {.cleanup = close_writer,
                                     .append = append,
                                     .tell = tell,
                                     .flush = end_file,
                                     .sync = end_file,
                                     .close = end_file};
  const TF_ReadOnlyMemoryRegionOps region = {
      .cleanup = close_region, .data = no_data, .length = no_length};
  info->plugin_memory_allocate = allocate;
  info->plugin_memory_free = free;
  info->num_schemes = 1;
  info->ops = calloc(1, sizeof(TF_FilesystemPluginOps));
  TF_SetFilesystemVersionMetadata(info->ops);
  info->ops->scheme = heap("fail", 5);
  info->ops->filesystem_ops = heap(&filesystem, sizeof filesystem);
  info->ops->random_access_file_ops = heap(&reader, sizeof reader);
  info->ops->writable_file_ops = heap(&writer, sizeof writer);
  info->ops->read_only_memory_region_ops = heap(&region, sizeof region);
}
