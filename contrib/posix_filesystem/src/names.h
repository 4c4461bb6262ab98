/* The names in a directory, read whole, so that the directory may change meanwhile. */
#pragma once

#include <dirent.h>

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
