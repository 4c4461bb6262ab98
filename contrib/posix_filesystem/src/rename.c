/* Renaming a file. Atomic: whoever looks at the target sees the old file or the new one. Never
 * leaves the device: EXDEV is passed on as UNIMPLEMENTED, since a copy could not be atomic. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.h"
#include "operations.h"
#include "place.h"
#include "spare_name.h"

/* rename(2) does nothing where both names are links of one file. */
static bool is_left(const char* source, const char* target, const struct stat* before) {
  struct stat now;
  return before->st_nlink > 1 && strcmp(source, target) != 0 && lstat(source, &now) == 0 &&
         now.st_dev == before->st_dev && now.st_ino == before->st_ino;
}

/* Puts what has the spare name back, if nobody made another file there meanwhile. */
static void put_back(const Place* place, const char* spare) {
  if (linkat(place->folder, spare, place->folder, place->name, 0) != 0) return;
  unlinkat(place->folder, spare, 0);
}

/* Moves the link at `place` aside first. If it is another file by now, the second rename moves that
 * one, as it should; if not, it does nothing again, and the link can go: its name is ours alone. */
static int move_link(const Place* place, const char* target) {
  char spare[kSpareNameBytes];
  posix_spare_name(spare);
  if (renameat(place->folder, place->name, place->folder, spare) != 0) {
    return errno == ENOENT ? 0 : errno; /* somebody else was faster */
  }
  if (renameat(place->folder, spare, AT_FDCWD, target) != 0) {
    const int error = errno;
    put_back(place, spare);
    return error;
  }
  unlinkat(place->folder, spare, 0);
  return 0;
}

static int remove_link(const char* source, const char* target) {
  Place place = {-1, ""};
  int error = posix_find_entry(source, &place);
  if (error == 0) error = move_link(&place, target);
  posix_leave_place(&place);
  return error;
}

/* A host that answers UNIMPLEMENTED by a copy and a deletion would delete what the link leads to. */
static bool leads_to(const char* target, const char* source) {
  struct stat one, other;
  return stat(source, &one) == 0 && stat(target, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

static void fail(TF_Status* status, int error, const char* source, const char* target) {
  if (error == EXDEV && leads_to(target, source)) {
    posix_refuse(status, TF_FAILED_PRECONDITION, target, "a link to it from another device");
  } else {
    posix_fail_both(status, error, source, target);
  }
}

void posix_rename_file(const TF_Filesystem* filesystem, const char* source, const char* target,
                       TF_Status* status) {
  (void)filesystem;
  struct stat facts;
  if (lstat(source, &facts) != 0) return posix_fail(status, errno, source);
  if (S_ISDIR(facts.st_mode)) return posix_fail(status, EISDIR, source);
  int error = rename(source, target) == 0 ? 0 : errno;
  if (error == 0 && is_left(source, target, &facts)) error = remove_link(source, target);
  if (error != 0) return fail(status, error, source, target);
  posix_succeed(status);
}
