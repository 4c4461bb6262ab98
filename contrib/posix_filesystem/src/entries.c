/* Names: files, directories and whole trees of them. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "operations.h"
#include "tree_removal.h"

/* Of the entry itself: a link to a directory is not a directory here. */
static bool is_real_directory(const char* path) {
  struct stat facts;
  return lstat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

void posix_delete_file(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem;
  if (unlink(path) == 0) return posix_succeed(status);
  const int error = errno;
  /* POSIX lets unlink answer EPERM for a directory; the contract wants FAILED_PRECONDITION. */
  posix_fail(status, error == EPERM && is_real_directory(path) ? EISDIR : error, path);
}

void posix_path_exists(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem;
  if (access(path, F_OK) != 0) return posix_fail(status, errno, path);
  posix_succeed(status);
}

static int64_t nanoseconds(struct timespec time) {
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

void posix_stat(const TF_Filesystem* filesystem, const char* path, TF_FileStatistics* statistics,
                TF_Status* status) {
  (void)filesystem;
  struct stat facts;
  if (stat(path, &facts) != 0) return posix_fail(status, errno, path);
  statistics->length = facts.st_size;
  statistics->mtime_nsec = nanoseconds(facts.st_mtim);
  statistics->is_directory = S_ISDIR(facts.st_mode);
  posix_succeed(status);
}

/* For a file the header would take OK and false, but TensorFlow reads only the status. */
bool posix_is_directory(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem;
  struct stat facts;
  if (stat(path, &facts) != 0) {
    posix_fail(status, errno, path);
    return false;
  }
  if (!S_ISDIR(facts.st_mode)) {
    posix_fail(status, ENOTDIR, path);
    return false;
  }
  posix_succeed(status);
  return true;
}

int64_t posix_get_file_size(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem;
  struct stat facts;
  int error = stat(path, &facts) == 0 ? 0 : errno;
  if (error == 0 && S_ISDIR(facts.st_mode)) error = EISDIR;
  if (error != 0) {
    posix_fail(status, error, path);
    return -1;
  }
  posix_succeed(status);
  return facts.st_size;
}

/* -- directories -- */

enum { kAllPermissions = 0777 }; /* the user's umask takes away from these */

void posix_create_dir(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem;
  if (mkdir(path, kAllPermissions) != 0) return posix_fail(status, errno, path);
  posix_succeed(status);
}

/* Cuts the last component off `path`. False when nothing would be left to make. */
static bool cut_last_component(char* path) {
  size_t end = strlen(path);
  while (end > 0 && path[end - 1] == '/') --end;
  while (end > 0 && path[end - 1] != '/') --end;
  while (end > 0 && path[end - 1] == '/') --end;
  path[end] = '\0';
  return end > 0;
}

/* mkdir that is content with a directory that is there. Returns 0 or an errno. */
static int ensure_directory(const char* path) {
  struct stat facts;
  if (mkdir(path, kAllPermissions) == 0) return 0;
  const int error = errno;
  if (error != EEXIST) return error;
  return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode) ? 0 : ENOTDIR;
}

/* Tries the whole path first, so that the common cases cost one call, and goes up only as far as
 * parents are missing. `path` is scratch of `length` bytes; it comes back whole.
 *
 * Safe against others who make the same tree: a directory that appears meanwhile is fine. */
static int ensure_tree(char* path, size_t length) {
  int error = ensure_directory(path);
  while (error == ENOENT && cut_last_component(path)) error = ensure_directory(path);
  while (error == 0 && strlen(path) < length) {
    path[strlen(path)] = '/'; /* put back the slash that the cut replaced: one component more */
    error = ensure_directory(path);
  }
  return error;
}

/* The cut leaves NUL bytes where slashes were; runs of slashes would confuse the way back. */
static void squeeze_slashes(char* path) {
  char* to = path;
  for (const char* from = path; *from != '\0'; ++from) {
    if (*from == '/' && (from[1] == '/' || (from[1] == '\0' && to != path))) continue;
    *to++ = *from;
  }
  *to = '\0';
}

void posix_recursively_create_dir(const TF_Filesystem* filesystem, const char* path,
                                  TF_Status* status) {
  (void)filesystem;
  if (*path == '\0') return posix_succeed(status); /* the current directory is there */
  char* scratch = strdup(path);
  if (scratch == NULL) return posix_fail(status, ENOMEM, path);
  squeeze_slashes(scratch);
  const int error = ensure_tree(scratch, strlen(scratch));
  if (error == 0) {
    posix_succeed(status);
  } else {
    posix_fail(status, error, scratch); /* names the component that stood in the way */
  }
  free(scratch);
}

void posix_delete_dir(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem;
  if (rmdir(path) == 0) return posix_succeed(status);
  /* POSIX lets rmdir say EEXIST for a directory with entries. */
  posix_fail(status, errno == EEXIST ? ENOTEMPTY : errno, path);
}

static int list(const char* path, Names* names) {
  DIR* directory = opendir(path);
  if (directory == NULL) return errno;
  const int error = posix_read_names(directory, names);
  closedir(directory);
  return error;
}

int posix_get_children(const TF_Filesystem* filesystem, const char* path, char*** entries,
                       TF_Status* status) {
  (void)filesystem;
  Names names = {NULL, 0, 0};
  const int error = list(path, &names);
  if (error != 0) {
    posix_drop_names(&names);
    posix_fail(status, error, path);
    return -1;
  }
  *entries = names.items; /* the host's from here on: it frees name by name */
  posix_succeed(status);
  return names.count;
}

static void report(const TreeRemoval* removal, const char* path, TF_Status* status) {
  if (removal->error == 0) return posix_succeed(status);
  char context[PATH_MAX + sizeof(": cannot delete ") + sizeof(removal->where)];
  snprintf(context, sizeof(context), "%s: cannot delete %s", path, removal->where);
  posix_fail(status, removal->error, context);
}

void posix_delete_recursively(const TF_Filesystem* filesystem, const char* path,
                              uint64_t* undeleted_files, uint64_t* undeleted_dirs,
                              TF_Status* status) {
  (void)filesystem;
  const TreeRemoval removal = posix_remove_tree(path);
  *undeleted_files = removal.undeleted_files;
  *undeleted_dirs = removal.undeleted_dirs;
  report(&removal, path, status);
}
