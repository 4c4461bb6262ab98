/* Deleting a tree: everything that can go goes, and what is left is counted.
 *
 * No part of the plugin's interface: the host runtime of modular_tf deletes by this file too. */
#pragma once

#include <stdint.h>

typedef struct TreeRemoval {
  uint64_t undeleted_files;
  uint64_t undeleted_dirs;
  int error;       /* errno of the first entry that stayed; 0 while none did */
  char where[256]; /* and its name */
} TreeRemoval;

/* Deletes what `path` names with all that is in it. Links are deleted, never followed, also where
 * slashes stand behind them. "/", "." and ".." are refused (EBUSY). Needs a few descriptors, however
 * deep the tree is. A path that is missing or unreadable counts as one directory. */
TreeRemoval posix_remove_tree(const char* path);
