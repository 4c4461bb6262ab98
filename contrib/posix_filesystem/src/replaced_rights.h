/* What belongs to a file that is replaced, not to its bytes. */
#pragma once

#include <sys/stat.h>

/* Gives the file at `descriptor` the owner, mode and access list of the one at `path`, of which
 * `facts` is what stat said. What cannot be given away makes it narrower: nobody may do more with
 * the new file than with the old one. */
void posix_keep_rights(const char* path, const struct stat* facts, int descriptor);
