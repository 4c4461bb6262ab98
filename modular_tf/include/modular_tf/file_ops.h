/* Files of a filesystem plugin: the wrapper that the host keeps of each, and the table of functions
 * on it. The rules at the head of filesystem.h hold here too. */
#ifndef MODULAR_TF_FILE_OPS_H_
#define MODULAR_TF_FILE_OPS_H_

#include <stddef.h>
#include <stdint.h>

#include "modular_tf/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_RandomAccessFile {
  void* plugin_file; /* the plugin's; NULL is allowed */
} TF_RandomAccessFile;

typedef struct TF_WritableFile {
  void* plugin_file; /* the plugin's; NULL is allowed */
} TF_WritableFile;

typedef struct TF_ReadOnlyMemoryRegion {
  void* plugin_memory_region; /* the plugin's; NULL is allowed */
} TF_ReadOnlyMemoryRegion;

typedef struct TF_RandomAccessFileOps {
  /* Required. Releases the file; last call on it, and not in parallel with any other. */
  void (*cleanup)(TF_RandomAccessFile* file);

  /* Reads up to `n` bytes at `offset` into `buffer`, which has space for `n`. Returns how many it
   * read: all of them with OK, fewer with OUT_OF_RANGE at the end of the file, -1 with any other
   * code. [any thread, in parallel on one file] */
  int64_t (*read)(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
                  TF_Status* status);
} TF_RandomAccessFileOps;

/* One writable file is used by one thread at a time. */
typedef struct TF_WritableFileOps {
  /* Required. Releases the file; the last call on it. */
  void (*cleanup)(TF_WritableFile* file);

  /* Adds `n` bytes at the end. RESOURCE_EXHAUSTED when there is no space for all of them. */
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

#ifdef __cplusplus
}
#endif
#endif
