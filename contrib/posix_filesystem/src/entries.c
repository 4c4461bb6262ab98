/* Operations on one entry of the tree: delete, and what a path is. One system call each, except
 * where the contract asks for an answer that the call does not give. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.h"
#include "operations.h"

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
