#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { kMostLinks = 40 }; /* as in the kernel */

/* Cuts the last component off `path` and returns the directory that it is in. */
static const char* split(char* path, const char** name) {
  char* slash = strrchr(path, '/');
  *name = slash == NULL ? path : slash + 1;
  if (slash == NULL) return ".";
  if (slash == path) return "/";
  *slash = '\0';
  return path;
}

static bool can_be_a_file(const char* name) {
  return *name != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Goes to what `path`, which is changed, names from the directory where `place` is. */
static int go(char* path, Place* place) {
  if (*path == '\0') return ENOENT;
  const char* name;
  const char* folder = split(path, &name);
  if (!can_be_a_file(name)) return EISDIR;
  if (strlen(name) > NAME_MAX) return ENAMETOOLONG;
  const int from = place->folder < 0 ? AT_FDCWD : place->folder;
  const int entered = openat(from, folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (entered < 0) return errno;
  posix_leave_place(place);
  place->folder = entered;
  strcpy(place->name, name);
  return 0;
}

static int copy_path(const char* path, char scratch[PATH_MAX]) {
  const size_t bytes = strlen(path) + 1;
  if (bytes > PATH_MAX) return ENAMETOOLONG;
  memcpy(scratch, path, bytes);
  return 0;
}

int posix_find_entry(const char* path, Place* place) {
  char scratch[PATH_MAX];
  const int error = copy_path(path, scratch);
  return error != 0 ? error : go(scratch, place);
}

int posix_find_file(const char* path, Place* place) {
  char scratch[PATH_MAX];
  int error = copy_path(path, scratch);
  for (int links = 0; error == 0 && links <= kMostLinks; ++links) {
    error = go(scratch, place);
    if (error != 0) return error;
    const ssize_t size = readlinkat(place->folder, place->name, scratch, sizeof(scratch));
    if (size < 0) return errno == EINVAL || errno == ENOENT ? 0 : errno; /* EINVAL: it is no link */
    if ((size_t)size == sizeof(scratch)) return ENAMETOOLONG;
    scratch[size] = '\0';
  }
  return error != 0 ? error : ELOOP;
}

void posix_leave_place(Place* place) {
  if (place->folder >= 0) close(place->folder);
  place->folder = -1;
}
