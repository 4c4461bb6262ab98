/* The filesystem plugin interface, as TensorFlow 2.x lays it out.
 *
 * A plugin is a shared library that defines TF_InitPlugin. It fills one TF_FilesystemPluginOps per
 * scheme with tables of functions; the host copies the tables and frees the plugin's.
 *
 * Rules that hold for every function below:
 * - A wrapper (TF_Filesystem, TF_RandomAccessFile, ...) is the host's and never NULL; what its
 *   pointer leads to is the plugin's, made in init/new_* and released in the cleanup of that table.
 * - Paths, patterns, buffers and statuses are the host's. Paths end in NUL and have been through
 *   translate_name; get_matching_paths alone receives its pattern as the user wrote it.
 * - A status arrives as OK: a function that never sets it succeeds.
 * - Memory that a function hands to the host comes from plugin_memory_allocate, and the host frees
 *   it with plugin_memory_free.
 * - Functions may run on any thread and in parallel, except those tagged otherwise.
 * - "optional" slots may be NULL; what follows says what the host does then.
 * - A C++ exception must not leave a function. */
#ifndef MODULAR_TF_FILESYSTEM_H_
#define MODULAR_TF_FILESYSTEM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modular_tf/export.h"
#include "modular_tf/file_statistics.h"
#include "modular_tf/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Wrappers of what a plugin keeps -------------------------------------------------------- */

typedef struct TF_RandomAccessFile {
  void* plugin_file; /* the plugin's; NULL is allowed */
} TF_RandomAccessFile;

typedef struct TF_WritableFile {
  void* plugin_file; /* the plugin's; NULL is allowed */
} TF_WritableFile;

typedef struct TF_ReadOnlyMemoryRegion {
  void* plugin_memory_region; /* the plugin's; NULL is allowed */
} TF_ReadOnlyMemoryRegion;

typedef struct TF_Filesystem {
  void* plugin_filesystem; /* the plugin's; NULL is allowed */
} TF_Filesystem;

typedef struct TF_TransactionToken {
  void* token;          /* the plugin's */
  TF_Filesystem* owner; /* the host's; not to be freed */
} TF_TransactionToken;

/* ---- Configuration options ------------------------------------------------------------------ */

typedef union TF_Filesystem_Option_Value_Union {
  int64_t int_val;
  double real_val;
  struct {
    char* buf;      /* owned by the option; need not end in NUL */
    int buf_length; /* bytes */
  } buffer_val;
} TF_Filesystem_Option_Value_Union;

typedef struct TF_Filesystem_Option_Value {
  int type_tag;                             /* TF_Filesystem_Option_Type; same for all values */
  int num_values;                           /* entries in `values` */
  TF_Filesystem_Option_Value_Union* values; /* owned by the option */
} TF_Filesystem_Option_Value;

typedef enum TF_Filesystem_Option_Type {
  TF_Filesystem_Option_Type_Int = 0,
  TF_Filesystem_Option_Type_Real = 1,
  TF_Filesystem_Option_Type_Buffer = 2,
  TF_Filesystem_Num_Option_Types = 3 /* a count, not a type */
} TF_Filesystem_Option_Type;

typedef struct TF_Filesystem_Option {
  char* name;                        /* the key; owned, never NULL */
  char* description;                 /* owned; NULL when there is none */
  int per_file;                      /* 0 or 1: may differ from file to file */
  TF_Filesystem_Option_Value* value; /* owned */
} TF_Filesystem_Option;

/* ---- Files ---------------------------------------------------------------------------------- */

typedef struct TF_RandomAccessFileOps {
  /* Required. Releases the file; last call on it, and not in parallel with any other. */
  void (*cleanup)(TF_RandomAccessFile* file);

  /* Reads up to `n` bytes at `offset` into `buffer`, which has room for `n`. Returns how many it
   * read: all of them with OK, fewer with OUT_OF_RANGE at the end of the file, -1 with any other
   * code. [any thread, in parallel on one file] */
  int64_t (*read)(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
                  TF_Status* status);
} TF_RandomAccessFileOps;

/* One writable file is used by one thread at a time. */
typedef struct TF_WritableFileOps {
  /* Required. Releases the file; the last call on it. */
  void (*cleanup)(TF_WritableFile* file);

  /* Adds `n` bytes at the end. RESOURCE_EXHAUSTED when not all of them found room. */
  void (*append)(const TF_WritableFile* file, const char* buffer, size_t n, TF_Status* status);

  /* The write position in bytes, or -1 with a code. Changes nothing. */
  int64_t (*tell)(const TF_WritableFile* file, TF_Status* status);

  /* Optional: nothing happens. Passes buffered bytes on, without waiting for the store. */
  void (*flush)(const TF_WritableFile* file, TF_Status* status);

  /* Optional: flush is called. Returns when the store has the bytes for good. */
  void (*sync)(const TF_WritableFile* file, TF_Status* status);

  /* Flushes and closes. The host calls it at most once, and cleanup after it, never from it. */
  void (*close)(const TF_WritableFile* file, TF_Status* status);
} TF_WritableFileOps;

typedef struct TF_ReadOnlyMemoryRegionOps {
  /* Required. Releases the region; last call on it, and not in parallel with any other. */
  void (*cleanup)(TF_ReadOnlyMemoryRegion* region);

  /* Required. First byte; stays the same until cleanup. Align to 64 bytes if tensors map it. */
  const void* (*data)(const TF_ReadOnlyMemoryRegion* region);

  /* Required. Bytes at `data`. */
  uint64_t (*length)(const TF_ReadOnlyMemoryRegion* region);
} TF_ReadOnlyMemoryRegionOps;

/* ---- The filesystem ------------------------------------------------------------------------- */

/* The layout of TensorFlow 2.3 to 2.21: 33 slots, 264 bytes. Older plugins stop after flush_caches
 * (22 slots) or decode_transaction_token (28 slots). */
typedef struct TF_FilesystemOps_V221 {
  /* Required. Called once per registration, before anything else. */
  void (*init)(TF_Filesystem* filesystem, TF_Status* status);

  /* Required. Called last, when no file of this filesystem is left. */
  void (*cleanup)(TF_Filesystem* filesystem);

  /* The four openers. Optional: UNIMPLEMENTED. Each needs the table of its kind of file. On success
   * they set the wrapper's pointer; on failure nothing is cleaned up.
   * NOT_FOUND: the path or a parent is missing. FAILED_PRECONDITION: it is a directory. */
  void (*new_random_access_file)(const TF_Filesystem* filesystem, const char* path,
                                 TF_RandomAccessFile* file, TF_Status* status);
  /* Replaces what was there. */
  void (*new_writable_file)(const TF_Filesystem* filesystem, const char* path,
                            TF_WritableFile* file, TF_Status* status);
  /* Keeps what was there, creates an empty file otherwise. */
  void (*new_appendable_file)(const TF_Filesystem* filesystem, const char* path,
                              TF_WritableFile* file, TF_Status* status);
  /* INVALID_ARGUMENT for an empty file. */
  void (*new_read_only_memory_region_from_file)(const TF_Filesystem* filesystem, const char* path,
                                                TF_ReadOnlyMemoryRegion* region,
                                                TF_Status* status);

  /* Optional: UNIMPLEMENTED. The parent must exist; ALREADY_EXISTS when the path does. */
  void (*create_dir)(const TF_Filesystem* filesystem, const char* path, TF_Status* status);

  /* Optional: the host walks up with path_exists and down with create_dir. An existing directory
   * is OK; FAILED_PRECONDITION when the path is a file. */
  void (*recursively_create_dir)(const TF_Filesystem* filesystem, const char* path,
                                 TF_Status* status);

  /* Optional: UNIMPLEMENTED. FAILED_PRECONDITION for a directory. */
  void (*delete_file)(const TF_Filesystem* filesystem, const char* path, TF_Status* status);

  /* Optional: UNIMPLEMENTED. FAILED_PRECONDITION unless it is an empty directory. */
  void (*delete_dir)(const TF_Filesystem* filesystem, const char* path, TF_Status* status);

  /* Optional: the host walks the tree. The counts say what is left behind: 0 and 0 with OK, 0 and 1
   * when the walk could not start. */
  void (*delete_recursively)(const TF_Filesystem* filesystem, const char* path,
                             uint64_t* undeleted_files, uint64_t* undeleted_dirs,
                             TF_Status* status);

  /* Optional: copy, then delete. Replaces `dst`. */
  void (*rename_file)(const TF_Filesystem* filesystem, const char* src, const char* dst,
                      TF_Status* status);

  /* Optional: the host reads and writes. Replaces `dst`. */
  void (*copy_file)(const TF_Filesystem* filesystem, const char* src, const char* dst,
                    TF_Status* status);

  /* Optional: UNIMPLEMENTED, also for the defaults built on it. OK when a file or directory is
   * there, NOT_FOUND when none is. */
  void (*path_exists)(const TF_Filesystem* filesystem, const char* path, TF_Status* status);

  /* Optional: path_exists, one by one. True when all exist. `statuses` is NULL or holds
   * `num_files` statuses, one to be set for each path. */
  bool (*paths_exist)(const TF_Filesystem* filesystem, char** paths, int num_files,
                      TF_Status** statuses);

  /* Optional: UNIMPLEMENTED. Fills `stats` with OK only. */
  void (*stat)(const TF_Filesystem* filesystem, const char* path, TF_FileStatistics* stats,
               TF_Status* status);

  /* Optional: path_exists, then stat. A file should set FAILED_PRECONDITION: TensorFlow reads the
   * status only, this host the status and the value. */
  bool (*is_directory)(const TF_Filesystem* filesystem, const char* path, TF_Status* status);

  /* Optional: stat. Bytes; FAILED_PRECONDITION for a directory. */
  int64_t (*get_file_size)(const TF_Filesystem* filesystem, const char* path, TF_Status* status);

  /* Optional: the path part of the URI, cleaned lexically. Never NULL; the host frees it. */
  char* (*translate_name)(const TF_Filesystem* filesystem, const char* uri);

  /* Optional: UNIMPLEMENTED. Names relative to `path`, neither empty nor "." nor ".." nor with a
   * '/'. Returns how many, or -1 with a code. The host frees each name and the array. */
  int (*get_children)(const TF_Filesystem* filesystem, const char* path, char*** entries,
                      TF_Status* status);

  /* Optional: the host matches level by level with get_children. Full paths, returned and freed
   * like those of get_children. `*`, `?` and `[...]` do not match '/'. */
  int (*get_matching_paths)(const TF_Filesystem* filesystem, const char* glob, char*** entries,
                            TF_Status* status);

  /* Optional: nothing happens. */
  void (*flush_caches)(const TF_Filesystem* filesystem);

  /* The six transaction slots. Optional. TensorFlow never called them and dropped them in 2.22.
   * They return -1 and set a code on failure. A token is the filesystem's. */
  int (*start_transaction)(const TF_Filesystem* filesystem, TF_TransactionToken** token,
                           TF_Status* status);
  int (*end_transaction)(const TF_Filesystem* filesystem, TF_TransactionToken* token,
                         TF_Status* status);
  int (*add_to_transaction)(const TF_Filesystem* filesystem, const char* path,
                            TF_TransactionToken* token, TF_Status* status);
  int (*get_transaction_for_path)(const TF_Filesystem* filesystem, const char* path,
                                  TF_TransactionToken** token, TF_Status* status);
  int (*get_or_start_transaction_for_path)(const TF_Filesystem* filesystem, const char* path,
                                           TF_TransactionToken** token, TF_Status* status);
  /* For people to read. Never NULL; the host frees it. */
  char* (*decode_transaction_token)(const TF_Filesystem* filesystem,
                                    const TF_TransactionToken* token);

  /* The five configuration slots. Optional: no options, and NOT_FOUND for a single one. The caller
   * frees what get_* returns, and keeps what it passes to set_*. */
  void (*get_filesystem_configuration)(const TF_Filesystem* filesystem,
                                       TF_Filesystem_Option** options, int* num_options,
                                       TF_Status* status);
  void (*set_filesystem_configuration)(const TF_Filesystem* filesystem,
                                       const TF_Filesystem_Option* options, int num_options,
                                       TF_Status* status);
  void (*get_filesystem_configuration_option)(const TF_Filesystem* filesystem, const char* key,
                                              TF_Filesystem_Option** option, TF_Status* status);
  /* The option's own name is the key. */
  void (*set_filesystem_configuration_option)(const TF_Filesystem* filesystem,
                                              const TF_Filesystem_Option* option,
                                              TF_Status* status);
  /* The type cannot carry an array back; no host calls it. Leave it NULL. */
  void (*get_filesystem_configuration_keys)(const TF_Filesystem* filesystem, char** keys,
                                            int* num_keys, TF_Status* status);
} TF_FilesystemOps_V221;

/* The layout of TensorFlow 2.22: the transaction slots are gone from the middle, 27 slots, 216
 * bytes, under the same version numbers. Each slot means what the one of its name means above. */
typedef struct TF_FilesystemOps_V222 {
  void (*init)(TF_Filesystem* filesystem, TF_Status* status);
  void (*cleanup)(TF_Filesystem* filesystem);
  void (*new_random_access_file)(const TF_Filesystem* filesystem, const char* path,
                                 TF_RandomAccessFile* file, TF_Status* status);
  void (*new_writable_file)(const TF_Filesystem* filesystem, const char* path,
                            TF_WritableFile* file, TF_Status* status);
  void (*new_appendable_file)(const TF_Filesystem* filesystem, const char* path,
                              TF_WritableFile* file, TF_Status* status);
  void (*new_read_only_memory_region_from_file)(const TF_Filesystem* filesystem, const char* path,
                                                TF_ReadOnlyMemoryRegion* region,
                                                TF_Status* status);
  void (*create_dir)(const TF_Filesystem* filesystem, const char* path, TF_Status* status);
  void (*recursively_create_dir)(const TF_Filesystem* filesystem, const char* path,
                                 TF_Status* status);
  void (*delete_file)(const TF_Filesystem* filesystem, const char* path, TF_Status* status);
  void (*delete_dir)(const TF_Filesystem* filesystem, const char* path, TF_Status* status);
  void (*delete_recursively)(const TF_Filesystem* filesystem, const char* path,
                             uint64_t* undeleted_files, uint64_t* undeleted_dirs,
                             TF_Status* status);
  void (*rename_file)(const TF_Filesystem* filesystem, const char* src, const char* dst,
                      TF_Status* status);
  void (*copy_file)(const TF_Filesystem* filesystem, const char* src, const char* dst,
                    TF_Status* status);
  void (*path_exists)(const TF_Filesystem* filesystem, const char* path, TF_Status* status);
  bool (*paths_exist)(const TF_Filesystem* filesystem, char** paths, int num_files,
                      TF_Status** statuses);
  void (*stat)(const TF_Filesystem* filesystem, const char* path, TF_FileStatistics* stats,
               TF_Status* status);
  bool (*is_directory)(const TF_Filesystem* filesystem, const char* path, TF_Status* status);
  int64_t (*get_file_size)(const TF_Filesystem* filesystem, const char* path, TF_Status* status);
  char* (*translate_name)(const TF_Filesystem* filesystem, const char* uri);
  int (*get_children)(const TF_Filesystem* filesystem, const char* path, char*** entries,
                      TF_Status* status);
  int (*get_matching_paths)(const TF_Filesystem* filesystem, const char* glob, char*** entries,
                            TF_Status* status);
  void (*flush_caches)(const TF_Filesystem* filesystem);
  void (*get_filesystem_configuration)(const TF_Filesystem* filesystem,
                                       TF_Filesystem_Option** options, int* num_options,
                                       TF_Status* status);
  void (*set_filesystem_configuration)(const TF_Filesystem* filesystem,
                                       const TF_Filesystem_Option* options, int num_options,
                                       TF_Status* status);
  void (*get_filesystem_configuration_option)(const TF_Filesystem* filesystem, const char* key,
                                              TF_Filesystem_Option** option, TF_Status* status);
  void (*set_filesystem_configuration_option)(const TF_Filesystem* filesystem,
                                              const TF_Filesystem_Option* option,
                                              TF_Status* status);
  void (*get_filesystem_configuration_keys)(const TF_Filesystem* filesystem, char** keys,
                                            int* num_keys, TF_Status* status);
} TF_FilesystemOps_V222;

/* Which of the two a plugin means by TF_FilesystemOps. The 33-slot one is read by every host but
 * TensorFlow 2.22, whose configuration slots lie elsewhere; define MODULAR_TF_FILESYSTEM_V222
 * before this header to build for that one. */
#ifdef MODULAR_TF_FILESYSTEM_V222
typedef TF_FilesystemOps_V222 TF_FilesystemOps;
#else
typedef TF_FilesystemOps_V221 TF_FilesystemOps;
#endif

/* ---- Versions: equal ABI numbers are required, API numbers are for information -------------- */

#define TF_RANDOM_ACCESS_FILE_OPS_API 0
#define TF_RANDOM_ACCESS_FILE_OPS_ABI 0
#define TF_RANDOM_ACCESS_FILE_OPS_SIZE (sizeof(TF_RandomAccessFileOps))
#define TF_WRITABLE_FILE_OPS_API 0
#define TF_WRITABLE_FILE_OPS_ABI 0
#define TF_WRITABLE_FILE_OPS_SIZE (sizeof(TF_WritableFileOps))
#define TF_READ_ONLY_MEMORY_REGION_OPS_API 0
#define TF_READ_ONLY_MEMORY_REGION_OPS_ABI 0
#define TF_READ_ONLY_MEMORY_REGION_OPS_SIZE (sizeof(TF_ReadOnlyMemoryRegionOps))
#define TF_FILESYSTEM_OPS_API 0
#define TF_FILESYSTEM_OPS_ABI 0
#define TF_FILESYSTEM_OPS_SIZE (sizeof(TF_FilesystemOps))

/* ---- Registration --------------------------------------------------------------------------- */

/* One scheme. The scheme and the tables come from plugin_memory_allocate; the host frees them when
 * it has copied them, so the plugin must keep no pointer to them. */
typedef struct TF_FilesystemPluginOps {
  char* scheme; /* "s3" for s3://...; "" for plain local paths; never NULL */
  int filesystem_ops_abi;
  int filesystem_ops_api;
  size_t filesystem_ops_size;       /* bytes of the table: tells its layout */
  TF_FilesystemOps* filesystem_ops; /* required */
  int random_access_file_ops_abi;
  int random_access_file_ops_api;
  size_t random_access_file_ops_size;
  TF_RandomAccessFileOps* random_access_file_ops; /* NULL: no such files */
  int writable_file_ops_abi;
  int writable_file_ops_api;
  size_t writable_file_ops_size;
  TF_WritableFileOps* writable_file_ops; /* NULL: no such files */
  int read_only_memory_region_ops_abi;
  int read_only_memory_region_ops_api;
  size_t read_only_memory_region_ops_size;
  TF_ReadOnlyMemoryRegionOps* read_only_memory_region_ops; /* NULL: no such regions */
} TF_FilesystemPluginOps;

/* All that a plugin offers. The host passes it zeroed; the plugin sets every field. */
typedef struct TF_FilesystemPluginInfo {
  size_t num_schemes;                           /* entries in `ops` */
  TF_FilesystemPluginOps* ops;                  /* from plugin_memory_allocate; the host frees it */
  void* (*plugin_memory_allocate)(size_t size); /* required; like malloc */
  void (*plugin_memory_free)(void* ptr);        /* required; takes NULL as free does */
} TF_FilesystemPluginInfo;

/* Writes down the versions and sizes that this plugin was compiled with. Call it once per entry. */
static inline void TF_SetFilesystemVersionMetadata(TF_FilesystemPluginOps* ops) {
  ops->filesystem_ops_abi = TF_FILESYSTEM_OPS_ABI;
  ops->filesystem_ops_api = TF_FILESYSTEM_OPS_API;
  ops->filesystem_ops_size = TF_FILESYSTEM_OPS_SIZE;
  ops->random_access_file_ops_abi = TF_RANDOM_ACCESS_FILE_OPS_ABI;
  ops->random_access_file_ops_api = TF_RANDOM_ACCESS_FILE_OPS_API;
  ops->random_access_file_ops_size = TF_RANDOM_ACCESS_FILE_OPS_SIZE;
  ops->writable_file_ops_abi = TF_WRITABLE_FILE_OPS_ABI;
  ops->writable_file_ops_api = TF_WRITABLE_FILE_OPS_API;
  ops->writable_file_ops_size = TF_WRITABLE_FILE_OPS_SIZE;
  ops->read_only_memory_region_ops_abi = TF_READ_ONLY_MEMORY_REGION_OPS_ABI;
  ops->read_only_memory_region_ops_api = TF_READ_ONLY_MEMORY_REGION_OPS_API;
  ops->read_only_memory_region_ops_size = TF_READ_ONLY_MEMORY_REGION_OPS_SIZE;
}

/* Defined by the plugin. Called once per load, before any other function of the plugin. */
TF_CAPI_EXPORT extern void TF_InitPlugin(TF_FilesystemPluginInfo* plugin_info);

#ifdef __cplusplus
}
#endif
#endif
