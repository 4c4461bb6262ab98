/* Making and removing directories. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.h"
#include "operations.h"

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
