/* Listing a directory. */
#include <dirent.h>
#include <errno.h>

#include "failure.h"
#include "names.h"
#include "operations.h"

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
