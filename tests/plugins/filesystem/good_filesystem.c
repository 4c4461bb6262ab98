#define _POSIX_C_SOURCE 200809L
#include "good_filesystem.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "ledger.h"
#include "options.h"
#include "store.h"
#include "string_list.h"

/* ---- The filesystem itself ---- */

static void init(TF_Filesystem* filesystem, TF_Status* status) {
  filesystem->plugin_filesystem = store_new();
  ledger_add(&fixture_ledger.inits, 1);
  set_outcome(status, filesystem->plugin_filesystem ? TF_OK : TF_RESOURCE_EXHAUSTED, "init");
}

static void clean_up(TF_Filesystem* filesystem) {
  ledger_add(&fixture_ledger.cleanups, 1);
  store_delete(filesystem->plugin_filesystem);
}

/* Where the path begins in a URI: behind the scheme and the host. NULL when there is no path. */
static const char* path_part(const char* uri) {
  const char* host = strstr(uri, "://");
  return host == NULL ? uri : strchr(host + 3, '/');
}

static char* translate_name(const TF_Filesystem* filesystem, const char* uri) {
  (void)filesystem;
  const char* path = path_part(uri);
  char* name = ledger_string(path == NULL || *path == '\0' ? "/" : path);
  for (size_t end = strlen(name); end > 1 && name[end - 1] == '/'; --end) name[end - 1] = '\0';
  return name;
}

/* ---- Directories and files ---- */

static void create_dir(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  set_outcome(status, store_make_dir(filesystem->plugin_filesystem, path), path);
}

static void create_dirs(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  set_outcome(status, store_make_dirs(filesystem->plugin_filesystem, path), path);
}

static void delete_file(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  set_outcome(status, store_remove(filesystem->plugin_filesystem, path, false), path);
}

static void delete_dir(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  set_outcome(status, store_remove(filesystem->plugin_filesystem, path, true), path);
}

static void delete_tree(const TF_Filesystem* filesystem, const char* path, uint64_t* files,
                        uint64_t* dirs, TF_Status* status) {
  TF_Code code = store_remove_tree(filesystem->plugin_filesystem, path);
  *files = 0;
  *dirs = code == TF_OK ? 0 : 1;
  set_outcome(status, code, path);
}

static void rename_file(const TF_Filesystem* filesystem, const char* source, const char* target,
                        TF_Status* status) {
  set_outcome(status, store_rename(filesystem->plugin_filesystem, source, target), source);
}

static void copy_file(const TF_Filesystem* filesystem, const char* source, const char* target,
                      TF_Status* status) {
  set_outcome(status, store_copy(filesystem->plugin_filesystem, source, target), source);
}

/* ---- Questions ---- */

static TF_Code describe(const TF_Filesystem* filesystem, const char* path,
                        TF_FileStatistics* statistics) {
  return store_stat(filesystem->plugin_filesystem, path, statistics);
}

static void path_exists(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  TF_FileStatistics ignored;
  set_outcome(status, describe(filesystem, path, &ignored), path);
}

static bool paths_exist(const TF_Filesystem* filesystem, char** paths, int count,
                        TF_Status** statuses) {
  bool all = true;
  for (int i = 0; i < count; ++i) {
    TF_FileStatistics ignored;
    TF_Code code = describe(filesystem, paths[i], &ignored);
    all = all && code == TF_OK;
    if (statuses != NULL) set_outcome(statuses[i], code, paths[i]);
  }
  return all;
}

static void stat_path(const TF_Filesystem* filesystem, const char* path, TF_FileStatistics* stats,
                      TF_Status* status) {
  set_outcome(status, describe(filesystem, path, stats), path);
}

static bool is_directory(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  TF_FileStatistics found;
  TF_Code code = describe(filesystem, path, &found);
  if (code == TF_OK && !found.is_directory) code = TF_FAILED_PRECONDITION;
  set_outcome(status, code, path);
  return code == TF_OK;
}

static int64_t get_file_size(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  TF_FileStatistics found;
  TF_Code code = describe(filesystem, path, &found);
  if (code == TF_OK && found.is_directory) code = TF_FAILED_PRECONDITION;
  set_outcome(status, code, path);
  return code == TF_OK ? found.length : -1;
}

/* ---- Listings ---- */

/* What a listing looks for, and what it has found. */
typedef struct search {
  const char* wanted; /* a directory, or a pattern for whole paths */
  const char* prefix; /* of the URI that a found path belongs to */
  size_t prefix_length;
  string_list found;
} search;

static void add_child(const char* path, void* context) {
  search* children = context;
  const char* name = store_child_name(children->wanted, path);
  if (name != NULL) string_list_add(&children->found, name);
}

static int get_children(const TF_Filesystem* filesystem, const char* path, char*** entries,
                        TF_Status* status) {
  bool listable = is_directory(filesystem, path, status);
  if (!listable) return -1;
  search children = {.wanted = path};
  store_each(filesystem->plugin_filesystem, add_child, &children);
  *entries = children.found.items;
  return children.found.count;
}

static void add_match(const char* path, void* context) {
  search* matches = context;
  bool is_root = strcmp(path, "/") == 0; /* a star would match its empty name */
  if (is_root || fnmatch(matches->wanted, path, FNM_PATHNAME) != 0) return;
  char* uri = malloc(matches->prefix_length + strlen(path) + 1);
  if (uri == NULL) abort();
  memcpy(uri, matches->prefix, matches->prefix_length);
  strcpy(uri + matches->prefix_length, path);
  string_list_add(&matches->found, uri);
  free(uri);
}

static int get_matching_paths(const TF_Filesystem* filesystem, const char* glob, char*** entries,
                              TF_Status* status) {
  const char* pattern = path_part(glob);
  search matches = {.wanted = pattern == NULL ? "/" : pattern, .prefix = glob};
  matches.prefix_length = pattern == NULL ? strlen(glob) : (size_t)(pattern - glob);
  store_each(filesystem->plugin_filesystem, add_match, &matches);
  *entries = matches.found.items;
  set_outcome(status, TF_OK, "");
  return matches.found.count;
}

static void flush_caches(const TF_Filesystem* filesystem) { (void)filesystem; }

const TF_FilesystemOps good_filesystem_ops = {
    .init = init,
    .cleanup = clean_up,
    .new_random_access_file = open_random_access_file,
    .new_writable_file = open_writable_file,
    .new_appendable_file = open_appendable_file,
    .new_read_only_memory_region_from_file = open_memory_region,
    .create_dir = create_dir,
    .recursively_create_dir = create_dirs,
    .delete_file = delete_file,
    .delete_dir = delete_dir,
    .delete_recursively = delete_tree,
    .rename_file = rename_file,
    .copy_file = copy_file,
    .path_exists = path_exists,
    .paths_exist = paths_exist,
    .stat = stat_path,
    .is_directory = is_directory,
    .get_file_size = get_file_size,
    .translate_name = translate_name,
    .get_children = get_children,
    .get_matching_paths = get_matching_paths,
    .flush_caches = flush_caches,
    .start_transaction = start_transaction,
    .end_transaction = end_transaction,
    .add_to_transaction = add_to_transaction,
    .get_transaction_for_path = get_transaction_for_path,
    .get_or_start_transaction_for_path = get_or_start_transaction_for_path,
    .decode_transaction_token = decode_transaction_token,
    .get_filesystem_configuration = get_configuration,
    .set_filesystem_configuration = set_configuration,
    .get_filesystem_configuration_option = get_option,
    .set_filesystem_configuration_option = set_option,
    .get_filesystem_configuration_keys = NULL, /* no type that a host could use */
};
