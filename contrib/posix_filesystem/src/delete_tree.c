/* The operation delete_recursively. */
#include <limits.h>
#include <stdio.h>

#include "failure.h"
#include "operations.h"
#include "tree_removal.h"

static void report(const TreeRemoval* removal, const char* path, TF_Status* status) {
  if (removal->error == 0) return posix_succeed(status);
  char context[PATH_MAX + sizeof(": cannot delete ") + sizeof(removal->where)];
  snprintf(context, sizeof(context), "%s: cannot delete %s", path, removal->where);
  posix_fail(status, removal->error, context);
}

void posix_delete_recursively(const TF_Filesystem* filesystem, const char* path,
                              uint64_t* undeleted_files, uint64_t* undeleted_dirs,
                              TF_Status* status) {
  (void)filesystem;
  const TreeRemoval removal = posix_remove_tree(path);
  *undeleted_files = removal.undeleted_files;
  *undeleted_dirs = removal.undeleted_dirs;
  report(&removal, path, status);
}
