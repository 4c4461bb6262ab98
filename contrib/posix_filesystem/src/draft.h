/* A file that is written beside its place and takes its name when it is whole.
 *
 * Where the disk can do that it has no name until then: nobody sees it, and it is gone when the
 * process is killed. Elsewhere it has a spare name (spare_name.h). */
#pragma once

#include <sys/stat.h>

#include "place.h"
#include "spare_name.h"

/* Ends with posix_drop_draft. */
typedef struct Draft {
  int descriptor;             /* open for writing */
  char name[kSpareNameBytes]; /* empty while it has none */
} Draft;

/* Makes an empty file in the directory of `place`, with `mode` as the umask lets it be. Returns 0 or
 * an errno. */
int posix_make_draft(const Place* place, mode_t mode, Draft* draft);

/* Gives the draft its spare name, if it has none. Returns 0 or an errno. */
int posix_name_draft(const Place* place, Draft* draft);

/* Renames the draft, which has a name, to its place; what was there is replaced. By a rename also
 * where nothing was there: that is how whoever watches the directory hears of a file that is whole.
 * Returns 0 or an errno. */
int posix_put_draft(const Place* place, Draft* draft);

/* Closes it; removes it where it was not put in its place. */
void posix_drop_draft(const Place* place, Draft* draft);
