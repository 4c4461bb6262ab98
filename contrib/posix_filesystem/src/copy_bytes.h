/* Moving bytes from one descriptor to another without taking them through user space. */
#pragma once

#include <sys/stat.h>

/* Copies from the start of `source` to where a read finds its end, to the start of the empty
 * `target`. `facts` is what fstat said of the source; its size is a hint, since files of the kernel
 * tell a wrong one and others may change meanwhile. Holes stay holes. Returns 0 or an errno. */
int posix_copy_bytes(int source, int target, const struct stat* facts);
