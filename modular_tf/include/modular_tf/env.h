/* Services of the host's operating system layer: local files, clocks, threads, shared libraries.
 *
 * File functions take a plain path or a `file://` URI and work on the local disk. Unless said
 * otherwise arguments are not NULL, strings end in NUL and belong to the caller, and a function may
 * be called from any thread; one handle is for one thread at a time. */
#ifndef MODULAR_TF_ENV_H_
#define MODULAR_TF_ENV_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modular_tf/export.h"
#include "modular_tf/file_statistics.h"
#include "modular_tf/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_WritableFileHandle TF_WritableFileHandle; /* closed by TF_CloseWritableFile */
typedef struct TF_StringStream TF_StringStream;             /* ended by TF_StringStreamDone */
typedef struct TF_Thread TF_Thread;                         /* ended by TF_JoinThread */

typedef struct TF_ThreadOptions {
  size_t stack_size; /* bytes; 0: the system's default */
  size_t guard_size; /* bytes; 0: the system's default */
  int numa_node;     /* preferred node; -1: none */
} TF_ThreadOptions;

/* One directory; its parent must exist. ALREADY_EXISTS when the path is taken. */
TF_CAPI_EXPORT extern void TF_CreateDir(const char* dirname, TF_Status* status);

/* One empty directory. */
TF_CAPI_EXPORT extern void TF_DeleteDir(const char* dirname, TF_Status* status);

/* A directory with all below it. Links are deleted, never followed; "/", "." and ".." are refused.
 * Goes on past failures; the counts say what is left, the status holds the first failure. A path
 * that is missing or unreadable counts as one directory. */
TF_CAPI_EXPORT extern void TF_DeleteRecursively(const char* dirname, int64_t* undeleted_file_count,
                                                int64_t* undeleted_dir_count, TF_Status* status);

/* Fills `stats` only when the status is OK. Follows symbolic links. */
TF_CAPI_EXPORT extern void TF_FileStat(const char* filename, TF_FileStatistics* stats,
                                       TF_Status* status);

/* Creates or empties a file. `*handle` is the caller's until TF_CloseWritableFile, NULL on error. */
TF_CAPI_EXPORT extern void TF_NewWritableFile(const char* filename, TF_WritableFileHandle** handle,
                                              TF_Status* status);

/* Writes what is buffered, closes and frees the handle, whether or not that worked. */
TF_CAPI_EXPORT extern void TF_CloseWritableFile(TF_WritableFileHandle* handle, TF_Status* status);

/* Flushes, then waits until the disk has the data. */
TF_CAPI_EXPORT extern void TF_SyncWritableFile(TF_WritableFileHandle* handle, TF_Status* status);

/* Hands buffered bytes to the kernel. */
TF_CAPI_EXPORT extern void TF_FlushWritableFile(TF_WritableFileHandle* handle, TF_Status* status);

/* `data` need not end in NUL and may be NULL when `length` is 0. */
TF_CAPI_EXPORT extern void TF_AppendWritableFile(TF_WritableFileHandle* handle, const char* data,
                                                 size_t length, TF_Status* status);

TF_CAPI_EXPORT extern void TF_DeleteFile(const char* filename, TF_Status* status);

/* The next string, owned by the stream and valid until TF_StringStreamDone. False, and `*result`
 * NULL, at the end or for a NULL stream. */
TF_CAPI_EXPORT extern bool TF_StringStreamNext(TF_StringStream* list, const char** result);

/* Frees a stream and its strings. NULL is allowed. */
TF_CAPI_EXPORT extern void TF_StringStreamDone(TF_StringStream* list);

/* Names in a directory, without "." and "..". The stream is the caller's, on error too, when it is
 * empty. */
TF_CAPI_EXPORT extern TF_StringStream* TF_GetChildren(const char* filename, TF_Status* status);

/* Directories fit for temporary files, best first, each ending in '/': the first that exists of
 * TEST_TMPDIR, TMPDIR, TMP and /tmp. The stream is the caller's. */
TF_CAPI_EXPORT extern TF_StringStream* TF_GetLocalTempDirectories(void);

/* A new empty file, readable by this user alone, whose path no other call returned. `extension` goes
 * after a dot and may be "". The caller removes the file and frees the path with free(). Aborts when
 * no temporary directory is writable. */
TF_CAPI_EXPORT extern char* TF_GetTempFileName(const char* extension);

/* Time since 1970-01-01 UTC. */
TF_CAPI_EXPORT extern uint64_t TF_NowNanos(void);
TF_CAPI_EXPORT extern uint64_t TF_NowMicros(void);
TF_CAPI_EXPORT extern uint64_t TF_NowSeconds(void);

/* Sets system defaults for both sizes and no NUMA node. */
TF_CAPI_EXPORT extern void TF_DefaultThreadOptions(TF_ThreadOptions* options);

/* Runs `work_func(param)` on a new thread. The handle is the caller's until TF_JoinThread. The name
 * is copied and shortened to what the system shows (15 bytes). Aborts when no thread can be made. */
TF_CAPI_EXPORT extern TF_Thread* TF_StartThread(const TF_ThreadOptions* options,
                                                const char* thread_name, void (*work_func)(void*),
                                                void* param);

/* Waits for the thread and frees its handle. */
TF_CAPI_EXPORT extern void TF_JoinThread(TF_Thread* thread);

/* A handle that is never unloaded; NULL and NOT_FOUND when the loader refuses. */
TF_CAPI_EXPORT extern void* TF_LoadSharedLibrary(const char* library_filename, TF_Status* status);

/* The address of a symbol; NULL and NOT_FOUND when there is none. */
TF_CAPI_EXPORT extern void* TF_GetSymbolFromLibrary(void* handle, const char* symbol_name,
                                                    TF_Status* status);

#ifdef __cplusplus
}
#endif
#endif
