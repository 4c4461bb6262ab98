/* TF_DeleteRecursively, by the code of the bundled plugin for local files. */
#include "contrib/posix_filesystem/src/tree_removal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "copied_text.h"
#include "local_path.h"
#include "modular_tf/env.h"

static void report(const TreeRemoval* removal, const char* name, TF_Status* status) {
  if (removal->error == 0) return;
  char context[PATH_MAX + sizeof(": cannot delete ") + sizeof(removal->where)];
  snprintf(context, sizeof(context), "%s: cannot delete %s", name, removal->where);
  TF_SetStatusFromIOError(status, removal->error, context);
}

void TF_DeleteRecursively(const char* dirname, int64_t* undeleted_file_count,
                          int64_t* undeleted_dir_count, TF_Status* status) {
  *undeleted_file_count = 0;
  *undeleted_dir_count = 1;
  const char* path = mtf_local_path(dirname, status);
  if (path == NULL) return;
  char* copy = mtf_copied_text(path); /* the plugin may change its own */
  if (copy == NULL) {
    TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory for a path");
    return;
  }
  const TreeRemoval removal = posix_remove_tree(copy);
  free(copy);
  *undeleted_file_count = (int64_t)removal.undeleted_files;
  *undeleted_dir_count = (int64_t)removal.undeleted_dirs;
  report(&removal, dirname, status);
}
