/* System calls that fail, or that somebody else comes before: a plugin that is linked with them has
 * these in the C library's place (-Bsymbolic).
 *
 * A test arms it for one call of a plugin: kernel_faults_begin(faults), the call, and then
 * kernel_faults_end(). Each line of `faults` is one of
 *
 *   FUNCTION fail ERRNO FIRST COUNT   calls FIRST to FIRST+COUNT-1 fail (COUNT 0: all from FIRST on)
 *   FUNCTION short BYTES              each call moves no more than BYTES bytes
 *   FUNCTION cut SIZE PATH            before the first call PATH gets this size
 *   FUNCTION append PATH              before the first call PATH gets "more" at its end
 *   FUNCTION replace PATH OTHER       before the first call OTHER is renamed to PATH
 *   FUNCTION kill                     the process is killed by the first call
 *
 * FUNCTION is the C function's name; openat_tmpfile, openat_exclusive, openat_parent, lseek_data and
 * lseek_hole are calls with that flag, path or whence. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
enum { kMostFaults = 8, kPath = 512 };

typedef struct Fault {
  char function[32];
  char action[16];
  char path[kPath];
  char other[kPath];
  long number, first, count;
  long calls;
} Fault;

static Fault faults[kMostFaults];
static int armed; /* how many of them */

static void parse(const char* line, Fault* fault) {
  *fault = (Fault){.first = 1};
  char rest[2 * kPath] = "";
  sscanf(line, "%31s %15s %1023[^\n]", fault->function, fault->action, rest);
  if (strcmp(fault->action, "fail") == 0)
    sscanf(rest, "%ld %ld %ld", &fault->number, &fault->first, &fault->count);
  else if (strcmp(fault->action, "cut") == 0)
    sscanf(rest, "%ld %511s", &fault->number, fault->path);
  else if (strcmp(fault->action, "short") == 0)
    sscanf(rest, "%ld", &fault->number);
  else
    sscanf(rest, "%511s %511s", fault->path, fault->other);
}

EXPORTED void kernel_faults_begin(const char* lines) {
  int count = 0;
  for (const char* line = lines; *line != '\0' && count < kMostFaults; ++count) {
    parse(line, &faults[count]);
    line += strcspn(line, "\n");
    line += *line == '\n';
  }
  armed = count;
}

EXPORTED void kernel_faults_end(void) { armed = 0; }

/* What somebody else does, with system calls that are not ours. */
static void act(const Fault* fault) {
  const int before = armed;
  armed = 0;
  bool done = true;
  if (strcmp(fault->action, "cut") == 0) done = truncate(fault->path, fault->number) == 0;
  if (strcmp(fault->action, "replace") == 0) done = rename(fault->other, fault->path) == 0;
  if (strcmp(fault->action, "kill") == 0) done = kill(getpid(), SIGKILL) == 0;
  if (strcmp(fault->action, "append") == 0) {
    const int file = open(fault->path, O_WRONLY | O_APPEND);
    done = write(file, "more", 4) == 4;
    close(file);
  }
  if (!done) abort();
  armed = before;
}

/* False with errno when the call is to fail. `size` may become smaller. */
static bool goes_on(const char* function, size_t* size) {
  for (int i = 0; i < armed; ++i) {
    Fault* fault = &faults[i];
    if (strcmp(fault->function, function) != 0) continue;
    const long call = ++fault->calls;
    const bool is_failure = strcmp(fault->action, "fail") == 0;
    const bool in_time = fault->count == 0 || call < fault->first + fault->count;
    if (is_failure && call >= fault->first && in_time) {
      errno = (int)fault->number;
      return false;
    }
    if (strcmp(fault->action, "short") == 0) {
      if (size != NULL && *size > (size_t)fault->number) *size = (size_t)fault->number;
    } else if (!is_failure && call == 1) {
      act(fault);
    }
  }
  return true;
}

#define NEXT(type, name) ((type)dlsym(RTLD_NEXT, name))

EXPORTED int openat64(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const bool is_unnamed = (flags & O_TMPFILE) == O_TMPFILE;
  const mode_t mode = is_unnamed || (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (is_unnamed && !goes_on("openat_tmpfile", NULL)) return -1;
  if ((flags & O_EXCL) != 0 && !goes_on("openat_exclusive", NULL)) return -1;
  if (strcmp(path, "..") == 0 && !goes_on("openat_parent", NULL)) return -1;
  return NEXT(int (*)(int, const char*, int, ...), "openat64")(folder, path, flags, mode);
}

EXPORTED off64_t lseek64(int file, off64_t offset, int whence) {
  if (whence == SEEK_DATA && !goes_on("lseek_data", NULL)) return -1;
  if (whence == SEEK_HOLE && !goes_on("lseek_hole", NULL)) return -1;
  return NEXT(off64_t(*)(int, off64_t, int), "lseek64")(file, offset, whence);
}

EXPORTED ssize_t copy_file_range(int in, off64_t* from, int out, off64_t* to, size_t n,
                                 unsigned flags) {
  if (!goes_on("copy_file_range", &n)) return -1;
  return NEXT(ssize_t(*)(int, off64_t*, int, off64_t*, size_t, unsigned), "copy_file_range")(
      in, from, out, to, n, flags);
}

EXPORTED ssize_t sendfile64(int out, int in, off64_t* offset, size_t n) {
  if (!goes_on("sendfile", &n)) return -1;
  return NEXT(ssize_t(*)(int, int, off64_t*, size_t), "sendfile64")(out, in, offset, n);
}

EXPORTED ssize_t read(int file, void* buffer, size_t n) {
  if (!goes_on("read", &n)) return -1;
  return NEXT(ssize_t(*)(int, void*, size_t), "read")(file, buffer, n);
}

EXPORTED ssize_t write(int file, const void* buffer, size_t n) {
  if (!goes_on("write", &n)) return -1;
  if (n == 0) return 0;
  return NEXT(ssize_t(*)(int, const void*, size_t), "write")(file, buffer, n);
}

EXPORTED int close(int file) {
  const bool fine = goes_on("close", NULL);
  const int error = errno;
  const int done = NEXT(int (*)(int), "close")(file);
  errno = fine ? errno : error;
  return fine ? done : -1;
}

EXPORTED int dup(int file) {
  return goes_on("dup", NULL) ? NEXT(int (*)(int), "dup")(file) : -1;
}

EXPORTED int fsync(int file) {
  return goes_on("fsync", NULL) ? NEXT(int (*)(int), "fsync")(file) : -1;
}

EXPORTED int linkat(int old_folder, const char* old, int new_folder, const char* new, int flags) {
  if (!goes_on("linkat", NULL)) return -1;
  return NEXT(int (*)(int, const char*, int, const char*, int), "linkat")(old_folder, old,
                                                                         new_folder, new, flags);
}

EXPORTED int renameat(int old_folder, const char* old, int new_folder, const char* new) {
  if (!goes_on("renameat", NULL)) return -1;
  return NEXT(int (*)(int, const char*, int, const char*), "renameat")(old_folder, old, new_folder,
                                                                      new);
}

EXPORTED int fchown(int file, uid_t owner, gid_t group) {
  if (!goes_on("fchown", NULL)) return -1;
  return NEXT(int (*)(int, uid_t, gid_t), "fchown")(file, owner, group);
}

EXPORTED int faccessat(int folder, const char* path, int mode, int flags) {
  if (!goes_on("faccessat", NULL)) return -1;
  return NEXT(int (*)(int, const char*, int, int), "faccessat")(folder, path, mode, flags);
}

