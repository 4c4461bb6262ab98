/* The filesystem plugin interface, as TensorFlow 2.x defines it.
 *
 * A plugin is a shared library that defines TF_InitPlugin. It fills one TF_FilesystemPluginOps per
 * scheme with tables of functions; the host copies the tables and frees the plugin's.
 *
 * Rules that hold for every function below:
 * - A wrapper (TF_Filesystem, TF_RandomAccessFile, ...) is the host's and never NULL; what its
 *   pointer leads to is the plugin's, made in init/new_* and released in the cleanup of that table.
 * - Paths, patterns, buffers and statuses are the host's. Paths end in NUL and have been through
 *   translate_name; get_matching_paths alone receives its pattern as the user wrote it.
 * - A function sets its status on every way out, to TF_OK where it succeeds (check FS-136). This
 *   host lends it as OK; do not rely on that.
 * - Memory that a function hands to the host comes from plugin_memory_allocate, and the host frees
 *   it with plugin_memory_free.
 * - Functions may run on any thread and in parallel, except those tagged otherwise.
 * - "optional" slots may be NULL; what follows says what the host does then.
 * - A C++ exception must not leave a function. */
#ifndef MODULAR_TF_FILESYSTEM_H_
#define MODULAR_TF_FILESYSTEM_H_

#include <stddef.h>

#include "modular_tf/export.h"
#include "modular_tf/file_ops.h"
#include "modular_tf/filesystem_ops.h"

#ifdef __cplusplus
extern "C" {
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
  size_t filesystem_ops_size;       /* bytes of the table: its layout */
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
