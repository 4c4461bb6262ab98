/* The entry point: which schemes there are, and the tables of each; and how operations report. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operations.h"

void posix_succeed(TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }

void posix_fail(TF_Status* status, int error, const char* path) {
  TF_SetStatusFromIOError(status, error, path);
}

void posix_fail_both(TF_Status* status, int error, const char* source, const char* target) {
  char paths[2 * PATH_MAX + sizeof(" -> ")];
  snprintf(paths, sizeof(paths), "%s -> %s", source, target);
  posix_fail(status, error, paths);
}

void posix_refuse(TF_Status* status, TF_Code code, const char* path, const char* reason) {
  const size_t room = strlen(path) + strlen(reason) + sizeof("; ");
  char* message = malloc(room);
  if (message == NULL) {
    TF_SetStatus(status, code, reason);
    return;
  }
  snprintf(message, room, "%s; %s", path, reason);
  TF_SetStatus(status, code, message);
  free(message);
}

/* Memory that goes over to the host comes from malloc throughout the plugin. */
static void* plugin_allocate(size_t size) { return malloc(size); }
static void plugin_free(void* memory) { free(memory); }

/* The disk has no state of ours: `plugin_filesystem` stays NULL. */
static void init(TF_Filesystem* filesystem, TF_Status* status) {
  filesystem->plugin_filesystem = NULL;
  posix_succeed(status);
}

static void cleanup(TF_Filesystem* filesystem) { (void)filesystem; }

static const TF_RandomAccessFileOps kRandomAccessFileOps = {
    .cleanup = posix_random_access_cleanup,
    .read = posix_random_access_read,
};

static const TF_WritableFileOps kWritableFileOps = {
    .cleanup = posix_writable_cleanup,
    .append = posix_writable_append,
    .tell = posix_writable_tell,
    .flush = posix_writable_flush,
    .sync = posix_writable_sync,
    .close = posix_writable_close,
};

static const TF_ReadOnlyMemoryRegionOps kRegionOps = {
    .cleanup = posix_region_cleanup,
    .data = posix_region_data,
    .length = posix_region_length,
};

/* Slots left NULL on purpose, where the host's own answer is the right one:
 * - translate_name: "file:///a/../b" and "/a/../b" become "/b", which is what the kernel wants;
 * - paths_exist: asks path_exists for each, and so would we;
 * - flush_caches, transactions, configuration: there is nothing of the kind. */
static const TF_FilesystemOps kFilesystemOps = {
    .init = init,
    .cleanup = cleanup,
    .new_random_access_file = posix_new_random_access_file,
    .new_writable_file = posix_new_writable_file,
    .new_appendable_file = posix_new_appendable_file,
    .new_read_only_memory_region_from_file = posix_new_region,
    .create_dir = posix_create_dir,
    .recursively_create_dir = posix_recursively_create_dir,
    .delete_file = posix_delete_file,
    .delete_dir = posix_delete_dir,
    .delete_recursively = posix_delete_recursively,
    .rename_file = posix_rename_file,
    .copy_file = posix_copy_file,
    .path_exists = posix_path_exists,
    .stat = posix_stat,
    .is_directory = posix_is_directory,
    .get_file_size = posix_get_file_size,
    .get_children = posix_get_children,
    .get_matching_paths = posix_get_matching_paths,
};

/* The host frees each table by itself, so each scheme gets its own copies. NULL when out of
 * memory, which the host refuses with a message of its own. */
static void* copy_of(const void* table, size_t size) {
  void* copy = plugin_allocate(size);
  if (copy != NULL) memcpy(copy, table, size);
  return copy;
}

static void fill(TF_FilesystemPluginOps* ops, const char* scheme, size_t length) {
  TF_SetFilesystemVersionMetadata(ops);
  ops->scheme = strndup(scheme, length);
  ops->filesystem_ops = copy_of(&kFilesystemOps, sizeof(kFilesystemOps));
  ops->random_access_file_ops = copy_of(&kRandomAccessFileOps, sizeof(kRandomAccessFileOps));
  ops->writable_file_ops = copy_of(&kWritableFileOps, sizeof(kWritableFileOps));
  ops->read_only_memory_region_ops = copy_of(&kRegionOps, sizeof(kRegionOps));
}

static size_t count_items(const char* list) {
  size_t items = 1;
  for (; *list != '\0'; ++list) items += *list == ',';
  return items;
}

TF_CAPI_EXPORT void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  info->plugin_memory_allocate = plugin_allocate;
  info->plugin_memory_free = plugin_free;
  const char* rest = MTF_POSIX_SCHEMES;
  const size_t count = count_items(rest);
  info->ops = calloc(count, sizeof(TF_FilesystemPluginOps));
  info->num_schemes = info->ops == NULL ? 0 : count;
  for (size_t i = 0; i < info->num_schemes; ++i) {
    const size_t length = strcspn(rest, ",");
    fill(&info->ops[i], rest, length);
    rest += length + 1;
  }
}
