/* The names in a directory, read whole, so that the directory may change meanwhile; and deleting a tree:
 * everything that can go goes, and what is left is counted.
 *
 * No part of the plugin's interface: the host runtime of modular_tf deletes by this file too. */
#pragma once

#include <dirent.h>
#include <stdint.h>

/* Start from {NULL, 0, 0}. Array and names come from malloc, so that a host can free them. */
typedef struct Names {
  char** items;
  int count;
  int room;
} Names;

/* Adds every name but "." and "..". Returns 0 or an errno; what was read until then stays. */
int posix_read_names(DIR* directory, Names* names);

/* Adds one name, which must come from malloc and belongs to `names` from here on. Returns 0 or an
 * errno; the name is then still the caller's. */
int posix_take_name(Names* names, char* name);

void posix_drop_names(Names* names);

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
