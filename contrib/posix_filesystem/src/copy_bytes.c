#include "copy_bytes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum { kStepBytes = 1 << 30, kBufferBytes = 256 * 1024 };

/* One way of moving bytes: returns how many it moved, 0 at the end, -1 with errno. */
typedef ssize_t Step(int source, int target);

static ssize_t step_by_copy_file_range(int source, int target) {
  return copy_file_range(source, NULL, target, NULL, kStepBytes, 0);
}

static ssize_t step_by_sendfile(int source, int target) {
  return sendfile(target, source, NULL, kStepBytes);
}

/* The answers of a kernel or filesystem that does not know a call, or not for these two files. */
static bool not_offered(int error) {
  return error == ENOSYS || error == EINVAL || error == EXDEV || error == EOPNOTSUPP ||
         error == EPERM || error == EBADF || error == ETXTBSY;
}

/* Both descriptors stand where the last step left them, so the next way goes on from there. */
static int repeat(Step* step, int source, int target) {
  for (;;) {
    const ssize_t moved = step(source, target);
    if (moved == 0) return 0;
    if (moved < 0 && errno != EINTR) return errno;
  }
}

static int write_fully(int target, const char* bytes, size_t n) {
  while (n > 0) {
    const ssize_t done = write(target, bytes, n);
    if (done < 0 && errno != EINTR) return errno;
    if (done > 0) {
      bytes += done;
      n -= (size_t)done;
    }
  }
  return 0;
}

static int copy_through(int source, int target, char* buffer) {
  for (;;) {
    const ssize_t got = read(source, buffer, kBufferBytes);
    if (got == 0) return 0;
    if (got < 0 && errno != EINTR) return errno;
    const int error = got < 0 ? 0 : write_fully(target, buffer, (size_t)got);
    if (error != 0) return error;
  }
}

static int copy_by_read_and_write(int source, int target) {
  char* buffer = malloc(kBufferBytes);
  if (buffer == NULL) return ENOMEM;
  const int error = copy_through(source, target, buffer);
  free(buffer);
  return error;
}

int posix_copy_bytes(int source, int target, off_t size_hint) {
  /* Files of /proc and /sys say that they are empty, and copy_file_range believes them. */
  if (size_hint == 0) return copy_by_read_and_write(source, target);
  int error = repeat(step_by_copy_file_range, source, target);
  if (not_offered(error)) error = repeat(step_by_sendfile, source, target);
  if (not_offered(error)) error = copy_by_read_and_write(source, target);
  return error;
}
