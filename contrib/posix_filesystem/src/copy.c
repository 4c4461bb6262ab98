/* Copying a file inside the kernel, all or nothing.
 *
 * The bytes go to a new file (draft.h), which then takes the target's name: a failing copy leaves
 * the target as it was, and nobody sees half of it. A new file gets the mode of its source, less
 * the umask; a replaced one keeps what it had, since its rights do not belong to its bytes. Where
 * the folder takes no new file, or the target is a device, the bytes go into the target itself. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "copy_bytes.h"
#include "draft.h"
#include "failure.h"
#include "operations.h"
#include "place.h"
#include "replaced_rights.h"

typedef struct Copy {
  int source;
  struct stat source_facts;
  const char* target;
  bool target_exists;
  struct stat target_facts; /* of what the links lead to */
  Place place;              /* of the same */
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

/* Copies into the empty file at `descriptor`. 0 or an errno. */
static int fill(const Copy* copy, int descriptor) {
  return posix_copy_bytes(copy->source, descriptor, &copy->source_facts);
}

/* Network filesystems tell lost writes when a descriptor is closed, which is asked for here while
 * the file is not in its place. */
static int flush(int descriptor) {
  const int second = dup(descriptor);
  if (second < 0) return errno;
  return close(second) == 0 || errno == EINTR ? 0 : errno;
}

/* Empties what is open for writing and fills it, unless it has become the source meanwhile. */
static int overwrite(const Copy* copy, int descriptor) {
  struct stat facts;
  if (fstat(descriptor, &facts) != 0) return errno;
  if (same_file(&facts, &copy->source_facts)) return 0;
  if (S_ISREG(facts.st_mode) && ftruncate(descriptor, 0) != 0) return errno;
  return fill(copy, descriptor);
}

static int copy_in_place(const Copy* copy) {
  const int descriptor = open(copy->target, O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  int error = overwrite(copy, descriptor);
  if (close(descriptor) != 0 && error == 0 && errno != EINTR) error = errno;
  return error;
}

/* While it is filled, what replaces a file is for its owner alone. */
static mode_t mode_of_draft(const Copy* copy) {
  return copy->source_facts.st_mode & (copy->target_exists ? 0600 : 0777);
}

/* The draft is named before it gets its rights: with them it may belong to somebody else. */
static int complete(const Copy* copy, Draft* draft) {
  int error = fill(copy, draft->descriptor);
  if (error == 0) error = flush(draft->descriptor);
  if (error == 0) error = posix_name_draft(&copy->place, draft);
  if (error != 0) return error;
  if (copy->target_exists) {
    posix_keep_rights(copy->target, &copy->target_facts, draft->descriptor);
  }
  return posix_put_draft(&copy->place, draft);
}

/* The answers of a folder that takes no new file; /proc says ENOENT. */
static bool is_closed_folder(int error) {
  return error == EACCES || error == EPERM || error == ENOENT;
}

static int copy_beside(const Copy* copy) {
  Draft draft;
  int error = posix_make_draft(&copy->place, mode_of_draft(copy), &draft);
  if (copy->target_exists && is_closed_folder(error)) return copy_in_place(copy);
  if (error != 0) return error;
  error = complete(copy, &draft);
  posix_drop_draft(&copy->place, &draft);
  return error;
}

/* True for the links of /proc/self/fd too, which lead to files that have no such name. */
static bool has_no_place(const Copy* copy) {
  struct stat facts;
  if (!copy->target_exists) return false;
  return fstatat(copy->place.folder, copy->place.name, &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
         !same_file(&facts, &copy->target_facts);
}

/* A file that may not be written may not be replaced either, though its folder would allow it. */
static bool is_protected(const Copy* copy) {
  return copy->target_exists && faccessat(AT_FDCWD, copy->target, W_OK, AT_EACCESS) != 0 &&
         errno == EACCES;
}

static int copy_to_target(Copy* copy) {
  if (copy->target_exists && !S_ISREG(copy->target_facts.st_mode)) return copy_in_place(copy);
  if (is_protected(copy)) return EACCES;
  const int error = posix_find_file(copy->target, &copy->place);
  if (error != 0) return error;
  return has_no_place(copy) ? copy_in_place(copy) : copy_beside(copy);
}

/* Looks at the target; a copy of a file onto itself is done at once. */
static int copy_opened(Copy* copy) {
  copy->target_exists = stat(copy->target, &copy->target_facts) == 0;
  if (!copy->target_exists && errno != ENOENT) return errno;
  if (copy->target_exists && S_ISDIR(copy->target_facts.st_mode)) return EISDIR;
  if (copy->target_exists && same_file(&copy->source_facts, &copy->target_facts)) return 0;
  return copy_to_target(copy);
}

static int copy_file(const char* source, const char* target) {
  Copy copy = {.source = -1, .target = target, .place = {-1, ""}};
  int error = open_source(source, &copy);
  if (error == 0) error = copy_opened(&copy);
  posix_leave_place(&copy.place);
  if (copy.source >= 0) close(copy.source);
  return error;
}

void posix_copy_file(const TF_Filesystem* filesystem, const char* source, const char* target,
                     TF_Status* status) {
  (void)filesystem;
  const int error = copy_file(source, target);
  if (error != 0) return posix_fail_both(status, error, source, target);
  posix_succeed(status);
}
