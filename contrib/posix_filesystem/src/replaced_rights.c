#include "replaced_rights.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char kAccessList[] = "system.posix_acl_access";
enum { kAccessListBytes = 4096 };

/* Not being allowed to give a file away is no reason to fail: cp does not either. Returns whether
 * it has the group that it should have. */
static bool give_away(const struct stat* facts, int descriptor) {
  struct stat now;
  if (fchown(descriptor, facts->st_uid, facts->st_gid) == 0) return true;
  if (fchown(descriptor, (uid_t)-1, facts->st_gid) == 0) return true;
  return fstat(descriptor, &now) == 0 && now.st_gid == facts->st_gid;
}

/* Returns whether the new file has the list of the one at `path`, be it none. */
static bool keep_access_list(const char* path, int descriptor) {
  char list[kAccessListBytes];
  const ssize_t size = getxattr(path, kAccessList, list, sizeof(list));
  if (size < 0) return errno == ENODATA || errno == ENOTSUP;
  return fsetxattr(descriptor, kAccessList, list, (size_t)size, 0) == 0;
}

/* Members of a group that was lost count as others from now on, and others as members of the new
 * one: they all get what both had. */
static mode_t without_group(mode_t mode) {
  const mode_t both = mode >> 3 & mode & 07;
  return (mode & 0700) | both << 3 | both;
}

void posix_keep_rights(const char* path, const struct stat* facts, int descriptor) {
  fremovexattr(descriptor, kAccessList); /* what it has from the default list of its directory */
  const bool kept = give_away(facts, descriptor) && keep_access_list(path, descriptor);
  const mode_t mode = facts->st_mode & 0777;
  if (fchmod(descriptor, kept ? mode : without_group(mode)) != 0) errno = 0; /* it stays narrow */
}
