/* A live filesystem of a plugin: one function per operation, called on the host's protected copy
 * of the plugin's tables.
 *
 * Every function may be called from any thread without the GIL. A path is what the user wrote; it
 * is translated here (the plugin's translate_name, or the default rule). NULL means success. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "plugin_call.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mtf_filesystem mtf_filesystem;
typedef struct mtf_reader mtf_reader;
typedef struct mtf_writer mtf_writer;
typedef struct mtf_region mtf_region;

/* What TF_InitPlugin filled in: the layout of TF_FilesystemPluginInfo. */
typedef struct mtf_plugin_info {
  size_t num_schemes;
  void* ops;
  void* allocate;
  void* free;
} mtf_plugin_info;

/* Strings that a plugin returned, copied: `count` of them, each followed by a NUL. */
typedef struct mtf_strings {
  int64_t count;
  size_t size;
  char* bytes;
} mtf_strings;

/* Calls TF_InitPlugin on a zeroed info struct. */
mtf_error* mtf_init_filesystem_plugin(void* entry, const mtf_plugin* plugin, mtf_plugin_info* info);

/* Calls the plugin's own free; the pointer may be NULL. */
mtf_error* mtf_plugin_free(void* plugin_free, void* memory);

void mtf_strings_free(mtf_strings* strings);
void mtf_string_free(char* string);

/* `tables` is the host's block: TF_FilesystemOps (264 bytes), TF_RandomAccessFileOps (16),
 * TF_WritableFileOps (48), TF_ReadOnlyMemoryRegionOps (24), then the plugin's allocate and free; it must outlive
 * the filesystem. Calls `init`; on failure nothing is left behind. `plugin` may be NULL. */
mtf_error* mtf_filesystem_new(const void* tables, const mtf_plugin* plugin,
                              mtf_filesystem** filesystem);

/* The same, for a plugin whose cleanup ends all its filesystems of the process: they share what one
 * `init` made, and the last of them that closes runs cleanup. */
mtf_error* mtf_filesystem_new_shared(const void* tables, const mtf_plugin* plugin,
                                     mtf_filesystem** filesystem);

/* Closes every open file (a writable one is closed, then cleaned up), then runs the plugin's
 * cleanup once the last region is gone; `now` does not wait for regions. Further operations give
 * FAILED_PRECONDITION. Safe to call twice. */
mtf_error* mtf_filesystem_close(mtf_filesystem* filesystem, int now);

/* Drops the caller's reference. */
void mtf_filesystem_release(mtf_filesystem* filesystem);

/* In a forked child: forgets locks and open files of the parent; `reinitialise` also replaces the
 * plugin's state by a fresh `init`, without cleaning up the parent's. */
mtf_error* mtf_filesystem_after_fork(mtf_filesystem* filesystem, int reinitialise);

/* How many readers, writers and regions are open. */
int64_t mtf_filesystem_open_count(mtf_filesystem* filesystem);
/* 1: a call is under way, or something is open, or being opened. */
int mtf_filesystem_is_in_use(const mtf_filesystem* filesystem);

mtf_error* mtf_translate_name(mtf_filesystem* filesystem, const char* path, char** name);

/* Whether both paths translate to one name; 0 where that cannot be found out. */
int mtf_is_same_name(mtf_filesystem* filesystem, const char* one, const char* other);

/* Whether a path of `other` may be given to `filesystem`: both have the same functions of one
 * plugin, whose init has made nothing by which these could tell them apart. */
int mtf_filesystem_shares_store(const mtf_filesystem* filesystem, const mtf_filesystem* other);

mtf_error* mtf_create_dir(mtf_filesystem* filesystem, const char* path);
mtf_error* mtf_recursively_create_dir(mtf_filesystem* filesystem, const char* path);
mtf_error* mtf_delete_file(mtf_filesystem* filesystem, const char* path);
mtf_error* mtf_delete_dir(mtf_filesystem* filesystem, const char* path);
mtf_error* mtf_delete_recursively(mtf_filesystem* filesystem, const char* path,
                                  uint64_t* undeleted_files, uint64_t* undeleted_dirs);
mtf_error* mtf_rename_file(mtf_filesystem* filesystem, const char* source, const char* target);
mtf_error* mtf_copy_file(mtf_filesystem* filesystem, const char* source, const char* target);
mtf_error* mtf_path_exists(mtf_filesystem* filesystem, const char* path);

/* One error (or NULL) per path in `errors`, which the caller has zeroed; `all` is what the plugin
 * returned. */
mtf_error* mtf_paths_exist(mtf_filesystem* filesystem, const char* const* paths, int count,
                           mtf_error** errors, int* all);
/* `result` has the 24 bytes of a TF_FileStatistics: cffi hands a bytes object over faster than a
 * struct. */
mtf_error* mtf_stat_path(mtf_filesystem* filesystem, const char* path, char* result);
mtf_error* mtf_is_directory(mtf_filesystem* filesystem, const char* path, int* result);
mtf_error* mtf_get_file_size(mtf_filesystem* filesystem, const char* path, int64_t* size);
mtf_error* mtf_get_children(mtf_filesystem* filesystem, const char* path, mtf_strings* names);
mtf_error* mtf_get_matching_paths(mtf_filesystem* filesystem, const char* pattern,
                                  mtf_strings* paths);
mtf_error* mtf_flush_caches(mtf_filesystem* filesystem);

mtf_error* mtf_reader_open(mtf_filesystem* filesystem, const char* path, mtf_reader** reader);
/* Reads up to `size` bytes at `offset`; the end of the file is not an error but a short count. */
mtf_error* mtf_reader_read(mtf_reader* reader, uint64_t offset, char* buffer, size_t size,
                           int64_t* count);
/* What mtf_read_small_file did. */
typedef struct mtf_file_read {
  const char* operation; /* called last: where there is an error, the one that failed */
  int64_t count;         /* bytes in the buffer */
} mtf_file_read;

/* Reads a whole file that is shorter than `size` bytes: opens it, reads it, and closes it. A file that
 * fills the buffer stays open as `reader`, which is NULL otherwise. */
mtf_error* mtf_read_small_file(mtf_filesystem* filesystem, const char* path, char* buffer,
                               size_t size, mtf_file_read* done, mtf_reader** reader);
/* Safe to call twice, and while another thread reads: cleanup then follows that read. */
mtf_error* mtf_reader_close(mtf_reader* reader);
/* Closes, and drops the caller's reference. */
void mtf_reader_release(mtf_reader* reader);

mtf_error* mtf_writer_open(mtf_filesystem* filesystem, const char* path, int append,
                           mtf_writer** writer);
/* `tears`: not 0 where one that fails tears the file, as mtf_writer_tear. */
mtf_error* mtf_writer_append(mtf_writer* writer, const char* data, size_t size, int tears);
/* How many bytes the plugin has taken since the file was opened. */
uint64_t mtf_writer_appended(mtf_writer* writer);
mtf_error* mtf_writer_tell(mtf_writer* writer, int64_t* position);
mtf_error* mtf_writer_flush(mtf_writer* writer);
mtf_error* mtf_writer_sync(mtf_writer* writer);
/* The plugin's close, then its cleanup whatever close said. Safe to call twice. */
mtf_error* mtf_writer_close(mtf_writer* writer);
/* The plugin's cleanup without its close, so that a plugin which stores a file when it is closed does
 * not store it. Safe to call twice, and after the close. */
mtf_error* mtf_writer_discard(mtf_writer* writer);
/* The end of the file that is no close by its user, the release or the end of the filesystem, is a
 * discard from now on. */
void mtf_writer_tear(mtf_writer* writer);
/* 1: a call of this thread uses the file, and a signal handler runs in the middle of it. Until the
 * handler has returned the other functions give FAILED_PRECONDITION, since they would wait for that
 * call; a file that is closed then is closed when the call has ended. */
int mtf_writer_is_interrupted(const mtf_writer* writer);
void mtf_writer_release(mtf_writer* writer);

mtf_error* mtf_region_open(mtf_filesystem* filesystem, const char* path, mtf_region** region,
                           const char** data, uint64_t* length);
void mtf_region_release(mtf_region* region);

/* Transactions and configuration of a filesystem: rarely offered, experimental everywhere. */

/* The layouts of TF_Filesystem_Option and what it holds. */
typedef struct mtf_option_buffer {
  char* bytes;
  int length;
} mtf_option_buffer;

typedef union mtf_option_item {
  int64_t integer;
  double real;
  mtf_option_buffer buffer;
} mtf_option_item;

typedef struct mtf_option_value {
  int type_tag; /* 0 integers, 1 reals, 2 buffers */
  int num_values;
  mtf_option_item* values;
} mtf_option_value;

typedef struct mtf_option {
  char* name;
  char* description;
  int per_file;
  mtf_option_value* value;
} mtf_option;

/* `token` receives what the plugin made; it belongs to the plugin. */
mtf_error* mtf_start_transaction(mtf_filesystem* filesystem, void** token);
mtf_error* mtf_end_transaction(mtf_filesystem* filesystem, void* token);
mtf_error* mtf_add_to_transaction(mtf_filesystem* filesystem, const char* path, void* token);
mtf_error* mtf_get_transaction_for_path(mtf_filesystem* filesystem, const char* path, void** token);
mtf_error* mtf_get_or_start_transaction_for_path(mtf_filesystem* filesystem, const char* path,
                                                 void** token);
/* Without a text of the plugin's: what the token holds. The caller frees `text`. */
mtf_error* mtf_decode_transaction_token(mtf_filesystem* filesystem, const void* token, char** text);

/* The array and all it holds are the caller's: give it back by mtf_options_free. */
mtf_error* mtf_get_configuration(mtf_filesystem* filesystem, mtf_option** options, int* count);
mtf_error* mtf_get_configuration_option(mtf_filesystem* filesystem, const char* key,
                                        mtf_option** option);
void mtf_options_free(mtf_filesystem* filesystem, mtf_option* options, int count);
/* The options stay the caller's: the plugin sees a copy in memory of its own allocator. */
mtf_error* mtf_set_configuration(mtf_filesystem* filesystem, const mtf_option* options, int count);
mtf_error* mtf_set_configuration_option(mtf_filesystem* filesystem, const mtf_option* option);

/* The path rules of TensorFlow's filesystems: how a URI splits, and the default translation. */

/* Offset of the path in `uri`: after `scheme://host`, or 0 where `uri` has no scheme. A scheme is
 * a letter and then one or more letters, digits or dots. `scheme_length` may be NULL. */
size_t mtf_uri_path_offset(const char* uri, size_t* scheme_length);

/* Lexical normal form of `path` in `out`, which has room for strlen(path) + 2 bytes: single
 * slashes, no `.`, `..` resolved (clamped at the root, kept in front of a relative path), no
 * trailing slash; "" becomes ".". Returns the length. */
size_t mtf_clean_path(const char* path, char* out);

#ifdef __cplusplus
}
#endif
