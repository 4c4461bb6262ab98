/* Deleting a tree from the leaves up, relative to open directories, and never through a link: a
 * link is deleted, what it points at is not touched, even if somebody swaps a directory for a link
 * meanwhile. One descriptor per level. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.h"
#include "names.h"
#include "operations.h"

typedef struct Walk {
  uint64_t undeleted_files;
  uint64_t undeleted_dirs;
  int error;       /* errno of the first entry that stayed; 0 while none did */
  char where[256]; /* and its name */
} Walk;

static void note(Walk* walk, int error, const char* name) {
  if (walk->error != 0) return;
  walk->error = error;
  snprintf(walk->where, sizeof(walk->where), "%s", name);
}

static void delete_directory(Walk* walk, int parent, const char* name);

static bool is_directory_at(int parent, const char* name) {
  struct stat facts;
  return fstatat(parent, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(facts.st_mode);
}

/* Most entries are files: one call each. Somebody else may have been faster. */
static void delete_entry(Walk* walk, int parent, const char* name) {
  if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) return;
  const int error = errno;
  if (is_directory_at(parent, name)) return delete_directory(walk, parent, name);
  ++walk->undeleted_files;
  note(walk, error, name);
}

/* Returns 0, or the errno that kept it from listing everything. */
static int delete_inside(Walk* walk, int parent, const char* name) {
  const int descriptor =
      openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return errno;
  DIR* directory = fdopendir(descriptor);
  if (directory == NULL) {
    close(descriptor);
    return ENOMEM;
  }
  Names names = {NULL, 0, 0};
  const int error = posix_read_names(directory, &names);
  for (int i = 0; i < names.count; ++i) delete_entry(walk, descriptor, names.items[i]);
  posix_drop_names(&names);
  closedir(directory);
  return error;
}

/* A directory that cannot be listed may still be empty, so it is removed if it can be. */
static void delete_directory(Walk* walk, int parent, const char* name) {
  const int error = delete_inside(walk, parent, name);
  if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return;
  ++walk->undeleted_dirs;
  note(walk, error != 0 ? error : errno, name);
}

/* "/" and whatever ends in "." or ".." cannot be removed in the end, so nothing inside is either.
 * A path without a component left is the root. */
static bool must_stay(const char* path) {
  const char* slash = strrchr(path, '/');
  const char* last = slash == NULL ? path : slash + 1;
  return *last == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0;
}

static void strip_trailing_slashes(char* path) {
  size_t end = strlen(path);
  while (end > 1 && path[end - 1] == '/') path[--end] = '\0';
}

static void report(const Walk* walk, const char* path, TF_Status* status) {
  if (walk->error == 0) return posix_succeed(status);
  char context[4096 + sizeof(walk->where)];
  snprintf(context, sizeof(context), "%s: cannot delete %s", path, walk->where);
  posix_fail(status, walk->error, context);
}

/* The entry at the top: when it cannot even be looked at, the walk did not start. */
static void delete_top(Walk* walk, const char* path) {
  struct stat facts;
  if (lstat(path, &facts) == 0) return delete_entry(walk, AT_FDCWD, path);
  walk->undeleted_dirs = 1;
  note(walk, errno, path);
}

void posix_delete_recursively(const TF_Filesystem* filesystem, const char* path,
                              uint64_t* undeleted_files, uint64_t* undeleted_dirs,
                              TF_Status* status) {
  (void)filesystem;
  Walk walk = {0, 0, 0, ""};
  *undeleted_files = 0;
  *undeleted_dirs = 1;
  char* top = strdup(path);
  if (top == NULL) return posix_fail(status, ENOMEM, path);
  strip_trailing_slashes(top); /* "link/" would mean the directory behind the link */
  if (*top != '\0' && must_stay(top)) {
    posix_refuse(status, TF_FAILED_PRECONDITION, path, "this directory cannot be deleted");
  } else {
    delete_top(&walk, top);
    *undeleted_files = walk.undeleted_files;
    *undeleted_dirs = walk.undeleted_dirs;
    report(&walk, path, status);
  }
  free(top);
}
