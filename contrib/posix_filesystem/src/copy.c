/* Copying a file inside the kernel, all or nothing.
 *
 * The bytes go to a new file beside the target, which then takes the target's name: a failing copy
 * leaves the target as it was, and nobody sees half of it. The mode and, where we may, the owner
 * of a replaced file are kept. Where the folder takes no new file, or the target is a device, the
 * bytes go into the target itself. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "copy_bytes.h"
#include "failure.h"
#include "operations.h"

typedef struct Copy {
  int source;
  struct stat source_facts;
  const char* target; /* links resolved */
  bool target_exists;
  struct stat target_facts;
} Copy;

/* 0 or an errno. */
static int open_source(const char* path, Copy* copy) {
  copy->source = open(path, O_RDONLY | O_CLOEXEC);
  if (copy->source < 0) return errno;
  if (fstat(copy->source, &copy->source_facts) != 0) return errno;
  return S_ISDIR(copy->source_facts.st_mode) ? EISDIR : 0;
}

static bool same_file(const struct stat* one, const struct stat* other) {
  return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* A name beside the target that no other copy of this or another process uses. */
static void name_beside(const char* target, char* name, size_t room) {
  static atomic_uint counter;
  const char* slash = strrchr(target, '/');
  const int folder = slash == NULL ? 0 : (int)(slash + 1 - target);
  snprintf(name, room, "%.*s.copy-%ld-%u", folder, target, (long)getpid(),
           atomic_fetch_add(&counter, 1));
}

/* What belongs to the replaced file, not to its bytes. Not being allowed to give a file away is
 * no reason to fail: cp does not either. */
static void keep_owner_and_mode(const Copy* copy, int descriptor) {
  if (!copy->target_exists) return;
  if (fchown(descriptor, copy->target_facts.st_uid, copy->target_facts.st_gid) != 0) errno = 0;
  fchmod(descriptor, copy->target_facts.st_mode & 0777);
}

/* Copies and closes `descriptor`. 0 or an errno. */
static int fill_and_close(const Copy* copy, int descriptor) {
  int error = posix_copy_bytes(copy->source, descriptor, &copy->source_facts);
  if (close(descriptor) != 0 && error == 0) error = errno;
  return error;
}

static int copy_in_place(const Copy* copy) {
  const int descriptor = open(copy->target, O_WRONLY | O_TRUNC | O_CLOEXEC);
  return descriptor < 0 ? errno : fill_and_close(copy, descriptor);
}

static int copy_beside(const Copy* copy, const char* beside, int descriptor) {
  keep_owner_and_mode(copy, descriptor);
  int error = fill_and_close(copy, descriptor);
  if (error == 0 && rename(beside, copy->target) != 0) error = errno;
  if (error != 0) unlink(beside);
  return error;
}

/* -1 with errno. A process that died may have left such a file: the next name is tried. */
static int create_beside(const char* target, char* name, size_t room) {
  int descriptor;
  do {
    name_beside(target, name, room);
    descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EEXIST);
  return descriptor;
}

static int copy_to_target(const Copy* copy) {
  if (copy->target_exists && !S_ISREG(copy->target_facts.st_mode)) return copy_in_place(copy);
  char beside[PATH_MAX];
  const int descriptor = create_beside(copy->target, beside, sizeof(beside));
  if (descriptor >= 0) return copy_beside(copy, beside, descriptor);
  const bool locked_folder = errno == EACCES || errno == EPERM;
  return copy->target_exists && locked_folder ? copy_in_place(copy) : errno;
}

/* Looks at the target; a copy of a file onto itself is done at once. */
static int copy_opened(Copy* copy) {
  copy->target_exists = stat(copy->target, &copy->target_facts) == 0;
  if (!copy->target_exists && errno != ENOENT) return errno;
  if (!copy->target_exists) return copy_to_target(copy);
  if (S_ISDIR(copy->target_facts.st_mode)) return EISDIR;
  if (same_file(&copy->source_facts, &copy->target_facts)) return 0;
  return copy_to_target(copy);
}

static int copy_file(const char* source, const char* target) {
  Copy copy = {.source = -1};
  int error = open_source(source, &copy);
  if (error == 0) {
    char* resolved = realpath(target, NULL); /* a link keeps pointing where it does */
    copy.target = resolved == NULL ? target : resolved;
    error = copy_opened(&copy);
    free(resolved);
  }
  if (copy.source >= 0) close(copy.source);
  return error;
}

void posix_copy_file(const TF_Filesystem* filesystem, const char* source, const char* target,
                     TF_Status* status) {
  (void)filesystem;
  const int error = copy_file(source, target);
  if (error == 0) return posix_succeed(status);
  char paths[2 * PATH_MAX];
  snprintf(paths, sizeof(paths), "%s -> %s", source, target);
  posix_fail(status, error, paths);
}
