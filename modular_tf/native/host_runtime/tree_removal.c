/* TF_DeleteRecursively: everything that can go goes, and what is left is counted. */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <unistd.h>

#include "copied_text.h"
#include "local_path.h"
#include "modular_tf/env.h"

struct removal {
  int64_t* undeleted_files;
  int64_t* undeleted_dirs;
  TF_Status* status;
};

/* Counts one entry that stays; the first reason is the one that the caller hears. */
static void leave(const struct removal* removal, int64_t* count, int error, const char* path) {
  ++*count;
  if (TF_GetCode(removal->status) == TF_OK) TF_SetStatusFromIOError(removal->status, error, path);
}

static void remove_entry(const struct removal* removal, const FTSENT* entry) {
  switch (entry->fts_info) {
    case FTS_D: /* its contents come first, itself later as FTS_DP */
      break;
    case FTS_DP:
      if (rmdir(entry->fts_accpath) != 0)
        leave(removal, removal->undeleted_dirs, errno, entry->fts_path);
      break;
    case FTS_DNR: /* unreadable; it may still be empty */
      if (rmdir(entry->fts_accpath) != 0)
        leave(removal, removal->undeleted_dirs, entry->fts_errno, entry->fts_path);
      break;
    default:
      if (unlink(entry->fts_accpath) != 0)
        leave(removal, removal->undeleted_files, errno, entry->fts_path);
  }
}

/* Symbolic links are removed, never followed. fts measures its roots more than once. */
static void remove_tree(const struct removal* removal, const char* path) {
  char* root = mtf_copied_text(path);
  FTS* walk = NULL;
  if (root != NULL) walk = fts_open((char*[]){root, NULL}, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
  const int error = errno;
  free(root); /* copied by then */
  if (walk == NULL) {
    leave(removal, removal->undeleted_dirs, error, path);
    return;
  }
  for (FTSENT* entry = fts_read(walk); entry != NULL; entry = fts_read(walk)) {
    remove_entry(removal, entry);
  }
  fts_close(walk);
}

void TF_DeleteRecursively(const char* dirname, int64_t* undeleted_file_count,
                          int64_t* undeleted_dir_count, TF_Status* status) {
  *undeleted_file_count = 0;
  *undeleted_dir_count = 0;
  const struct removal removal = {undeleted_file_count, undeleted_dir_count, status};
  const char* path = mtf_local_path(dirname, status);
  if (path == NULL) {
    *undeleted_dir_count = 1;
  } else if (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0) {
    leave(&removal, undeleted_dir_count, errno, dirname);
  } else {
    remove_tree(&removal, path);
  }
}
