/* A filesystem plugin that watches its host. Where the host cleans up what is in use, uses what was
 * cleaned up, or writes to one file from two threads, it says so and ends the process.
 *
 * Scheme `watch`. What a path with "slow" in it names takes its time: each call on it lasts until the
 * filesystem is cleaned up, which is too early, or PATIENCE_US microseconds are over. The size of a
 * path that ends with "inside" is how many calls are in the plugin, of one that ends with "cleanups"
 * how many filesystems were cleaned up. Each call on a path with "log" in it logs a line. */
#define _POSIX_C_SOURCE 200809L
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plugin_parts.h"
#include "modular_tf/logging.h"

/* Never freed, so that a use after the end is seen and not only felt. */
typedef struct store {
  atomic_int process; /* whose calls are counted: a forked child has none of its parent's */
  atomic_int calls;
  atomic_bool has_ended;
} store;

typedef struct open_file {
  store* of;
  bool is_slow;
  atomic_int writers;
  atomic_bool has_ended;
} open_file;

static const char content[] = "0123456789";
static atomic_int inside, cleanups;

static void complain(const char* what, const char* call) {
  fprintf(stderr, "the watchful plugin: %s: %s\n", what, call);
  abort();
}

static void wait_a_little(void) { nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL); }

static void begin(store* of, bool is_slow, const char* call) {
  if (of->has_ended) complain("called after the cleanup of the filesystem", call);
  ++of->calls;
  ++inside;
  for (int waited = 0; is_slow && waited < PATIENCE_US && !of->has_ended; waited += 100) {
    wait_a_little();
  }
}

static void end(store* of, const char* call) {
  if (of->has_ended) complain("the filesystem was cleaned up during", call);
  --inside;
  --of->calls;
}

static store* store_of(const TF_Filesystem* filesystem) {
  store* of = filesystem->plugin_filesystem;
  if (of->process != getpid()) {
    of->process = getpid();
    of->calls = 0;
  }
  return of;
}

static void use(const TF_Filesystem* filesystem, const char* path, const char* call) {
  if (strstr(path, "log") != NULL) TF_Log(TF_WARNING, "%s of %s", call, path);
  begin(store_of(filesystem), strstr(path, "slow") != NULL, call);
  end(store_of(filesystem), call);
}

static void start(TF_Filesystem* filesystem, TF_Status* status) {
  (void)status;
  filesystem->plugin_filesystem = calloc(1, sizeof(store));
}

static void clean_up(TF_Filesystem* filesystem) {
  store* of = store_of(filesystem);
  if (of->has_ended) complain("cleaned up twice", "the filesystem");
  if (of->calls != 0) complain("the filesystem is cleaned up", "calls are running");
  of->has_ended = true;
  ++cleanups;
}

/* ---- Files ---- */

static void begin_with(open_file* file, const char* call) {
  if (file->has_ended) complain("called after the cleanup of the file", call);
  begin(file->of, file->is_slow, call);
}

static open_file* opened(const TF_Filesystem* filesystem, const char* path, const char* call) {
  use(filesystem, path, call);
  open_file* file = calloc(1, sizeof(open_file));
  file->of = store_of(filesystem);
  file->is_slow = strstr(path, "slow") != NULL;
  return file;
}

static void ended(open_file* file, const char* call) {
  begin_with(file, call);
  file->has_ended = true;
  end(file->of, call);
}

static void open_reader(const TF_Filesystem* filesystem, const char* path,
                        TF_RandomAccessFile* file, TF_Status* status) {
  (void)status;
  file->plugin_file = opened(filesystem, path, "new_random_access_file");
}

static int64_t read_file(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
                         TF_Status* status) {
  open_file* mine = file->plugin_file;
  begin_with(mine, "read");
  const size_t size = sizeof content - 1;
  const size_t left = offset < size ? size - offset : 0;
  const size_t count = n < left ? n : left;
  memcpy(buffer, content + size - left, count);
  if (count < n) TF_SetStatus(status, TF_OUT_OF_RANGE, "the end");
  if (mine->has_ended) complain("the file was cleaned up during", "read");
  end(mine->of, "read");
  return (int64_t)count;
}

static void close_reader(TF_RandomAccessFile* file) { ended(file->plugin_file, "reader cleanup"); }

static void open_writer(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file,
                        TF_Status* status) {
  (void)status;
  file->plugin_file = opened(filesystem, path, "new_writable_file");
}

static void write_with(const TF_WritableFile* file, const char* call) {
  open_file* mine = file->plugin_file;
  begin_with(mine, call);
  if (++mine->writers != 1) complain("two threads use one writable file", call);
  wait_a_little();
  --mine->writers;
  end(mine->of, call);
}

static void append(const TF_WritableFile* file, const char* data, size_t n, TF_Status* status) {
  (void)data, (void)n, (void)status;
  write_with(file, "append");
}

static int64_t tell(const TF_WritableFile* file, TF_Status* status) {
  (void)status;
  write_with(file, "tell");
  return 0;
}

#define USES_WRITER(name)                                                 \
  static void name(const TF_WritableFile* file, TF_Status* status) {      \
    (void)status;                                                         \
    write_with(file, #name);                                              \
  }
USES_WRITER(flush)
USES_WRITER(sync_file)
USES_WRITER(close_writer)

static void clean_up_writer(TF_WritableFile* file) { ended(file->plugin_file, "writer cleanup"); }

static void open_region(const TF_Filesystem* filesystem, const char* path,
                        TF_ReadOnlyMemoryRegion* region, TF_Status* status) {
  (void)status;
  region->plugin_memory_region =
      opened(filesystem, path, "new_read_only_memory_region_from_file");
}

static const void* data_of(const TF_ReadOnlyMemoryRegion* region) {
  (void)region;
  return content;
}

static uint64_t length_of(const TF_ReadOnlyMemoryRegion* region) {
  (void)region;
  return sizeof content - 1;
}

static void close_region(TF_ReadOnlyMemoryRegion* region) {
  ended(region->plugin_memory_region, "region cleanup");
}

/* ---- Paths ---- */

#define ON_PATH(name)                                                                  \
  static void name(const TF_Filesystem* filesystem, const char* path, TF_Status* status) { \
    (void)status;                                                                      \
    use(filesystem, path, #name);                                                      \
  }
ON_PATH(create_dir)
ON_PATH(recursively_create_dir)
ON_PATH(delete_file)
ON_PATH(delete_dir)
ON_PATH(path_exists)

static void delete_recursively(const TF_Filesystem* filesystem, const char* path, uint64_t* files,
                               uint64_t* dirs, TF_Status* status) {
  (void)status;
  use(filesystem, path, "delete_recursively");
  *files = *dirs = 0;
}

#define ON_TWO_PATHS(name)                                                               \
  static void name(const TF_Filesystem* filesystem, const char* source, const char* target, \
                   TF_Status* status) {                                                  \
    (void)target, (void)status;                                                          \
    use(filesystem, source, #name);                                                      \
  }
ON_TWO_PATHS(rename_file)
ON_TWO_PATHS(copy_file)

static bool paths_exist(const TF_Filesystem* filesystem, char** paths, int count,
                        TF_Status** statuses) {
  (void)statuses;
  for (int i = 0; i < count; ++i) use(filesystem, paths[i], "paths_exist");
  return true;
}

static void stat_path(const TF_Filesystem* filesystem, const char* path, TF_FileStatistics* found,
                      TF_Status* status) {
  (void)status;
  use(filesystem, path, "stat");
  *found = (TF_FileStatistics){.length = sizeof content - 1};
}

static bool is_directory(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)status;
  use(filesystem, path, "is_directory");
  return false;
}

static int64_t get_file_size(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)status;
  if (strcmp(strrchr(path, '/'), "/inside") == 0) return inside;
  if (strcmp(strrchr(path, '/'), "/cleanups") == 0) return cleanups;
  use(filesystem, path, "get_file_size");
  return sizeof content - 1;
}

static int list(const TF_Filesystem* filesystem, const char* path, const char* call,
                char*** entries) {
  use(filesystem, path, call);
  *entries = malloc(sizeof(char*));
  **entries = strdup("entry");
  return 1;
}

static int get_children(const TF_Filesystem* filesystem, const char* path, char*** entries,
                        TF_Status* status) {
  (void)status;
  return list(filesystem, path, "get_children", entries);
}

static int get_matching_paths(const TF_Filesystem* filesystem, const char* glob, char*** entries,
                              TF_Status* status) {
  (void)status;
  return list(filesystem, glob, "get_matching_paths", entries);
}

static void flush_caches(const TF_Filesystem* filesystem) {
  use(filesystem, "", "flush_caches");
}

void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  const TF_FilesystemOps filesystem = {
      .init = start,
      .cleanup = clean_up,
      .new_random_access_file = open_reader,
      .new_writable_file = open_writer,
      .new_appendable_file = open_writer,
      .new_read_only_memory_region_from_file = open_region,
      .create_dir = create_dir,
      .recursively_create_dir = recursively_create_dir,
      .delete_file = delete_file,
      .delete_dir = delete_dir,
      .delete_recursively = delete_recursively,
      .rename_file = rename_file,
      .copy_file = copy_file,
      .path_exists = path_exists,
      .paths_exist = paths_exist,
      .stat = stat_path,
      .is_directory = is_directory,
      .get_file_size = get_file_size,
      .get_children = get_children,
      .get_matching_paths = get_matching_paths,
      .flush_caches = flush_caches};
  const TF_RandomAccessFileOps reader = {.cleanup = close_reader, .read = read_file};
  const TF_WritableFileOps writer = {.cleanup = clean_up_writer,
                                     .append = append,
                                     .tell = tell,
                                     .flush = flush,
                                     .sync = sync_file,
                                     .close = close_writer};
  const TF_ReadOnlyMemoryRegionOps region = {
      .cleanup = close_region, .data = data_of, .length = length_of};
  offer(info, "watch", &filesystem, &reader, &writer, &region);
}
