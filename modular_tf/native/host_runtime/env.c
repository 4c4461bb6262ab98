/* The functions of env.h: clocks, threads, libraries and files. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "contrib/posix_filesystem/src/tree_removal.h"
#include "copied_text.h"
#include "host_runtime.h"
#include "modular_tf/env.h"
#include "modular_tf/export.h"
#include "numa_affinity.h"

TF_CAPI_EXPORT const char* mtf_runtime_version(void) { return MODULAR_TF_VERSION; }

uint64_t TF_NowNanos(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t TF_NowMicros(void) { return TF_NowNanos() / 1000u; }

uint64_t TF_NowSeconds(void) { return TF_NowNanos() / 1000000000u; }

/* -- threads -- */

struct TF_Thread {
  pthread_t id;
  int numa_node;
  void (*work)(void*);
  void* argument;
  char name[16]; /* what the kernel keeps, NUL included */
};

void TF_DefaultThreadOptions(TF_ThreadOptions* options) {
  *options = (TF_ThreadOptions){.stack_size = 0, .guard_size = 0, .numa_node = -1};
}

static void* run(void* argument) {
  const TF_Thread* thread = argument;
  if (thread->name[0] != '\0') pthread_setname_np(pthread_self(), thread->name);
  mtf_stay_on_numa_node(thread->numa_node);
  thread->work(thread->argument);
  return NULL;
}

/* A size that the system does not take leaves its default in place. */
static void apply(const TF_ThreadOptions* options, pthread_attr_t* attributes) {
  pthread_attr_init(attributes);
  if (options->stack_size != 0) pthread_attr_setstacksize(attributes, options->stack_size);
  if (options->guard_size != 0) pthread_attr_setguardsize(attributes, options->guard_size);
}

static void require_started(int error, const char* name, const void* caller) {
  if (error == 0) return;
  char message[160];
  snprintf(message, sizeof(message), "cannot start thread '%s': %s", name, strerror(error));
  mtf_log_fatal(message, caller);
}

TF_Thread* TF_StartThread(const TF_ThreadOptions* options, const char* thread_name,
                          void (*work_func)(void*), void* param) {
  const char* name = thread_name == NULL ? "" : thread_name;
  const void* caller = __builtin_return_address(0);
  TF_Thread* thread = calloc(1, sizeof(*thread));
  if (thread == NULL) mtf_log_fatal("cannot start a thread: out of memory", caller);
  *thread = (TF_Thread){.numa_node = options->numa_node, .work = work_func, .argument = param};
  snprintf(thread->name, sizeof(thread->name), "%s", name);
  pthread_attr_t attributes;
  apply(options, &attributes);
  const int error = pthread_create(&thread->id, &attributes, run, thread);
  pthread_attr_destroy(&attributes);
  require_started(error, name, caller);
  return thread;
}

void TF_JoinThread(TF_Thread* thread) {
  pthread_join(thread->id, NULL);
  free(thread);
}

/* -- libraries that a plugin loads by itself. They stay mapped: pointers into them may exist -- */

static void* found(void* result, TF_Status* status) {
  TF_SetStatus(status, result == NULL ? TF_NOT_FOUND : TF_OK, result == NULL ? dlerror() : NULL);
  return result;
}

void* TF_LoadSharedLibrary(const char* library_filename, TF_Status* status) {
  return found(dlopen(library_filename, RTLD_NOW | RTLD_LOCAL), status);
}

void* TF_GetSymbolFromLibrary(void* handle, const char* symbol_name, TF_Status* status) {
  if (handle == NULL) {
    TF_SetStatus(status, TF_INVALID_ARGUMENT, "library handle is NULL");
    return NULL;
  }
  return found(dlsym(handle, symbol_name), status);
}

/* The files of env.h: local ones, by plain paths and by file:// URIs. */

static void refuse_scheme(const char* uri, size_t length, TF_Status* status) {
  char* message = NULL;
  if (asprintf(&message, "File system scheme '%.*s' not implemented (file: '%s')", (int)length, uri,
               uri) < 0) {
    message = NULL;
  }
  TF_SetStatus(status, TF_UNIMPLEMENTED, message);
  free(message);
}

/* Sets the status to OK and returns the path inside `uri`: the whole of it when it is a plain path,
 * what follows the host when it is a file:// URI. NULL and UNIMPLEMENTED for any other scheme. */
static const char* local_path(const char* uri, TF_Status* status) {
  TF_SetStatus(status, TF_OK, NULL);
  const size_t length = mtf_scheme_length(uri, SIZE_MAX);
  if (length == 0) return uri;
  if (length == 4 && strncmp(uri, "file", 4) == 0) {
    const char* host = uri + strlen("file://");
    return host + strcspn(host, "/");
  }
  refuse_scheme(uri, length, status);
  return NULL;
}

/* -- lists of names -- */

struct TF_StringStream {
  Names names;
  int next; /* the one that TF_StringStreamNext returns */
};

/* An empty stream; NULL when memory is out. */
static TF_StringStream* new_stream(void) { return calloc(1, sizeof(TF_StringStream)); }

bool TF_StringStreamNext(TF_StringStream* list, const char** result) {
  const bool is_more = list != NULL && list->next < list->names.count;
  *result = is_more ? list->names.items[list->next++] : NULL;
  return is_more;
}

void TF_StringStreamDone(TF_StringStream* list) {
  if (list == NULL) return;
  posix_drop_names(&list->names);
  free(list);
}

/* -- single directory entries -- */

void TF_CreateDir(const char* dirname, TF_Status* status) {
  const char* path = local_path(dirname, status);
  if (path != NULL && mkdir(path, 0755) != 0) TF_SetStatusFromIOError(status, errno, dirname);
}

void TF_DeleteDir(const char* dirname, TF_Status* status) {
  const char* path = local_path(dirname, status);
  if (path != NULL && rmdir(path) != 0) TF_SetStatusFromIOError(status, errno, dirname);
}

void TF_DeleteFile(const char* filename, TF_Status* status) {
  const char* path = local_path(filename, status);
  if (path != NULL && unlink(path) != 0) TF_SetStatusFromIOError(status, errno, filename);
}

static int list_directory(TF_StringStream* list, const char* path) {
  DIR* directory = opendir(path);
  if (directory == NULL) return errno;
  const int error = posix_read_names(directory, &list->names);
  closedir(directory);
  return error;
}

TF_StringStream* TF_GetChildren(const char* filename, TF_Status* status) {
  TF_StringStream* names = new_stream();
  const char* path = local_path(filename, status);
  if (path == NULL) return names;
  const int error = names == NULL ? ENOMEM : list_directory(names, path);
  if (error == 0) return names;
  TF_SetStatusFromIOError(status, error, filename);
  TF_StringStreamDone(names);
  return new_stream(); /* empty, as TensorFlow's is, not half a listing */
}

/* The nearest number that 64 bits hold, for the years before 1677 and after 2262. */
static int64_t nanoseconds(struct timespec time) {
  int64_t found = 0;
  if (!__builtin_mul_overflow((int64_t)time.tv_sec, 1000000000, &found) &&
      !__builtin_add_overflow(found, time.tv_nsec, &found)) {
    return found;
  }
  return time.tv_sec < 0 ? INT64_MIN : INT64_MAX;
}

void TF_FileStat(const char* filename, TF_FileStatistics* stats, TF_Status* status) {
  const char* path = local_path(filename, status);
  struct stat found;
  if (path == NULL) return;
  if (stat(path, &found) != 0) {
    TF_SetStatusFromIOError(status, errno, filename);
    return;
  }
  *stats = (TF_FileStatistics){.length = found.st_size,
                               .mtime_nsec = nanoseconds(found.st_mtim),
                               .is_directory = S_ISDIR(found.st_mode)};
}

/* -- TF_DeleteRecursively, by the code of the bundled plugin for local files -- */

static void report_removal(const TreeRemoval* removal, const char* name, TF_Status* status) {
  if (removal->error == 0) return;
  char context[PATH_MAX + sizeof(": cannot delete ") + sizeof(removal->where)];
  snprintf(context, sizeof(context), "%s: cannot delete %s", name, removal->where);
  TF_SetStatusFromIOError(status, removal->error, context);
}

void TF_DeleteRecursively(const char* dirname, int64_t* undeleted_file_count,
                          int64_t* undeleted_dir_count, TF_Status* status) {
  *undeleted_file_count = 0;
  *undeleted_dir_count = 1;
  const char* path = local_path(dirname, status);
  if (path == NULL) return;
  char* copy = mtf_copied_text(path); /* the plugin may change its own */
  if (copy == NULL) {
    TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory for a path");
    return;
  }
  const TreeRemoval removal = posix_remove_tree(copy);
  free(copy);
  *undeleted_file_count = (int64_t)removal.undeleted_files;
  *undeleted_dir_count = (int64_t)removal.undeleted_dirs;
  report_removal(&removal, dirname, status);
}

/* -- writable files over stdio: appends are buffered until a flush, a sync or the close -- */

struct TF_WritableFileHandle {
  FILE* stream;
  char name[]; /* as the caller gave it, for messages */
};

/* NULL and errno set on failure. */
static TF_WritableFileHandle* open_file(const char* path, const char* name) {
  const size_t length = mtf_text_length(name);
  TF_WritableFileHandle* file = malloc(sizeof(*file) + length + 1);
  if (file == NULL) return NULL;
  mtf_put_text(file->name, name, length);
  file->stream = fopen(path, "we");
  if (file->stream != NULL) return file;
  const int error = errno;
  free(file);
  errno = error;
  return NULL;
}

void TF_NewWritableFile(const char* filename, TF_WritableFileHandle** handle, TF_Status* status) {
  const char* path = local_path(filename, status);
  *handle = path == NULL ? NULL : open_file(path, filename);
  if (path != NULL && *handle == NULL) TF_SetStatusFromIOError(status, errno, filename);
}

/* Sets OK, or the errno of a call that failed. */
static void report(const TF_WritableFileHandle* handle, bool is_done, TF_Status* status) {
  TF_SetStatusFromIOError(status, is_done ? 0 : errno, handle->name);
}

void TF_AppendWritableFile(TF_WritableFileHandle* handle, const char* data, size_t length,
                           TF_Status* status) {
  report(handle, length == 0 || fwrite(data, 1, length, handle->stream) == length, status);
}

void TF_FlushWritableFile(TF_WritableFileHandle* handle, TF_Status* status) {
  report(handle, fflush(handle->stream) == 0, status);
}

void TF_SyncWritableFile(TF_WritableFileHandle* handle, TF_Status* status) {
  report(handle, fflush(handle->stream) == 0 && fsync(fileno(handle->stream)) == 0, status);
}

void TF_CloseWritableFile(TF_WritableFileHandle* handle, TF_Status* status) {
  report(handle, fclose(handle->stream) == 0, status);
  free(handle);
}

/* -- where temporary files go: the first directory that exists of those the environment names -- */

static const char* const kVariables[] = {"TEST_TMPDIR", "TMPDIR", "TMP"};
enum { kCandidates = 4 }; /* one per variable, then /tmp */

static const char* candidate(int index) {
  return index < kCandidates - 1 ? getenv(kVariables[index]) : "/tmp";
}

static bool is_directory(const char* path) {
  struct stat found;
  return path != NULL && *path != '\0' && stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

static const char* slash_after(const char* directory) {
  return directory[strlen(directory) - 1] == '/' ? "" : "/";
}

/* NULL when memory is out. The result is the caller's. */
static char* with_slash(const char* directory) {
  char* path = NULL;
  return asprintf(&path, "%s%s", directory, slash_after(directory)) < 0 ? NULL : path;
}

TF_StringStream* TF_GetLocalTempDirectories(void) {
  TF_StringStream* directories = new_stream();
  for (int i = 0; directories != NULL && i < kCandidates; ++i) {
    const char* path = candidate(i);
    char* shown = is_directory(path) ? with_slash(path) : NULL;
    if (shown != NULL && posix_take_name(&directories->names, shown) == 0) break;
    free(shown);
  }
  return directories;
}

/* Creates an empty file of a new name, for this user alone. NULL when the directory refuses. */
static char* create_in(const char* directory, const char* extension) {
  char* path = NULL;
  const int length = (int)mtf_text_length(extension);
  const char* dot = length == 0 ? "" : ".";
  if (asprintf(&path, "%s%smodular_tf_XXXXXX%s%.*s", directory, slash_after(directory), dot, length,
               extension) < 0) {
    return NULL;
  }
  const int file = mkstemps(path, (int)strlen(dot) + length);
  if (file < 0) {
    free(path);
    return NULL;
  }
  close(file);
  return path;
}

char* TF_GetTempFileName(const char* extension) {
  for (int i = 0; i < kCandidates; ++i) {
    const char* directory = candidate(i);
    char* path = is_directory(directory) ? create_in(directory, extension) : NULL;
    if (path != NULL) return path;
  }
  /* Plugins do not check for NULL, so it would end them anyway, with less to read. */
  mtf_log_fatal("no directory takes a temporary file; set TMPDIR to a writable one",
                __builtin_return_address(0));
}
