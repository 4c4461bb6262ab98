/* Moving bytes from one descriptor to another without taking them through user space. */
#ifndef POSIX_FILESYSTEM_COPY_BYTES_H_
#define POSIX_FILESYSTEM_COPY_BYTES_H_

#include <sys/types.h>

/* Copies from the position of `source` to its end, to the position of `target`. `size_hint` is the
 * size that stat gave. Returns 0 or an errno. */
int posix_copy_bytes(int source, int target, off_t size_hint);

#endif
