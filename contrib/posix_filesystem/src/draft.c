#include "draft.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

enum { kProcPathBytes = 32 };

/* The path by which the kernel links a file that has no name yet. */
static void path_of_descriptor(int descriptor, char path[kProcPathBytes]) {
  snprintf(path, kProcPathBytes, "/proc/self/fd/%d", descriptor);
}

static bool can_be_linked(int descriptor) {
  char path[kProcPathBytes];
  path_of_descriptor(descriptor, path);
  return faccessat(AT_FDCWD, path, F_OK, 0) == 0; /* false where /proc is not mounted */
}

static int link_as(const Place* place, const Draft* draft, const char* name) {
  char path[kProcPathBytes];
  path_of_descriptor(draft->descriptor, path);
  const bool done = linkat(AT_FDCWD, path, place->folder, name, AT_SYMLINK_FOLLOW) == 0;
  return done ? 0 : errno;
}

static int make_unnamed(const Place* place, mode_t mode, Draft* draft) {
  draft->name[0] = '\0';
  draft->descriptor = openat(place->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
  if (draft->descriptor < 0) return errno;
  if (can_be_linked(draft->descriptor)) return 0;
  close(draft->descriptor);
  return ENOTSUP;
}

static int make_named(const Place* place, mode_t mode, Draft* draft) {
  int error = EEXIST;
  for (int tries = 0; error == EEXIST && tries < kSpareNameTries; ++tries) {
    posix_spare_name(draft->name);
    draft->descriptor =
        openat(place->folder, draft->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    error = draft->descriptor < 0 ? errno : 0;
  }
  return error;
}

int posix_make_draft(const Place* place, mode_t mode, Draft* draft) {
  return make_unnamed(place, mode, draft) == 0 ? 0 : make_named(place, mode, draft);
}

int posix_name_draft(const Place* place, Draft* draft) {
  if (draft->name[0] != '\0') return 0;
  char name[kSpareNameBytes];
  int error = EEXIST;
  for (int tries = 0; error == EEXIST && tries < kSpareNameTries; ++tries) {
    posix_spare_name(name);
    error = link_as(place, draft, name);
  }
  if (error == 0) snprintf(draft->name, sizeof(draft->name), "%s", name);
  return error;
}

int posix_put_draft(const Place* place, Draft* draft) {
  if (renameat(place->folder, draft->name, place->folder, place->name) != 0) return errno;
  draft->name[0] = '\0';
  return 0;
}

void posix_drop_draft(const Place* place, Draft* draft) {
  if (draft->name[0] != '\0') unlinkat(place->folder, draft->name, 0);
  close(draft->descriptor);
}
