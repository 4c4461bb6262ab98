/* A name in an open directory: all steps of an operation then mean one and the same directory,
 * whatever others rename meanwhile, and no path of theirs is too long. */
#pragma once

#include <limits.h>

/* Starts as {-1, ""}. Ends with posix_leave_place, also after an error. */
typedef struct Place {
  int folder; /* opened with O_PATH; -1 for none */
  char name[NAME_MAX + 1];
} Place;

/* The entry that `path` names, be it a link. Returns 0 or an errno; EISDIR for a path that can only
 * be a directory's. */
int posix_find_entry(const char* path, Place* place);

/* Where open(path, O_CREAT) finds or makes a file: behind the links that `path` may be, also behind
 * a link to nothing. Returns like posix_find_entry. */
int posix_find_file(const char* path, Place* place);

void posix_leave_place(Place* place);
