/* The table of a whole filesystem, in both layouts, and what its functions exchange. The rules at
 * the head of filesystem.h hold here too. */
#ifndef MODULAR_TF_FILESYSTEM_OPS_H_
#define MODULAR_TF_FILESYSTEM_OPS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modular_tf/file_ops.h"
#include "modular_tf/file_statistics.h"
#include "modular_tf/status.h"

#ifdef __cplusplus
extern "C" {
#endif

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

  /* Optional: copy, then delete. Replaces `dst`; FAILED_PRECONDITION when either is a directory. */
  void (*rename_file)(const TF_Filesystem* filesystem, const char* src, const char* dst,
                      TF_Status* status);

  /* Optional: the host reads and writes. Replaces `dst`, and copies into a directory. After a
   * failure `dst` is what it was; the host's copy can keep that only where rename_file is set. */
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

  /* Optional: the path part of the URI, cleaned lexically. Of scheme://host/path the host is lost;
   * set this slot if it matters. Never NULL; the result is freed with plugin_memory_free. */
  char* (*translate_name)(const TF_Filesystem* filesystem, const char* uri);

  /* Optional: UNIMPLEMENTED. Names relative to `path`, neither empty nor "." nor ".." nor with a
   * '/'. Returns how many, or -1 with a code. The host frees each name and the array. */
  int (*get_children)(const TF_Filesystem* filesystem, const char* path, char*** entries,
                      TF_Status* status);

  /* Optional: the host matches level by level with get_children. Full paths, returned and freed
   * like those of get_children. `*`, `?` and `[...]` do not match '/'; `[^...]` negates, and in
   * TensorFlow and in this host so does `[!...]`. */
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
  /* Text for people; optional: the addresses of token and owner. Never NULL; the host frees it. */
  char* (*decode_transaction_token)(const TF_Filesystem* filesystem,
                                    const TF_TransactionToken* token);

  /* The five configuration slots. Optional: get_filesystem_configuration and the keys are none with
   * OK; a single option, and whatever is set, is NOT_FOUND. All options are memory of
   * plugin_memory_allocate and the caller's: it frees what get_* returns, and what it passes to
   * set_* when the call has returned. */
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

#ifdef __cplusplus
}
#endif
#endif
