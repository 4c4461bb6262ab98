#include "copy_bytes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum { kStepBytes = 1 << 30, kBufferBytes = 256 * 1024, kBlockBytes = 512 };

/* One way of moving up to `limit` bytes: returns how many it moved, 0 at the end, -1 with errno. */
typedef ssize_t Step(int source, int target, size_t limit);

static ssize_t step_by_copy_file_range(int source, int target, size_t limit) {
  return copy_file_range(source, NULL, target, NULL, limit, 0);
}

static ssize_t step_by_sendfile(int source, int target, size_t limit) {
  return sendfile(target, source, NULL, limit);
}

/* False with errno. */
static bool write_fully(int target, const char* bytes, size_t n) {
  while (n > 0) {
    const ssize_t done = write(target, bytes, n);
    if (done < 0 && errno != EINTR) return false;
    if (done > 0) {
      bytes += done;
      n -= (size_t)done;
    }
  }
  return true;
}

static ssize_t step_by_read_and_write(int source, int target, size_t limit) {
  char* buffer = malloc(kBufferBytes);
  if (buffer == NULL) {
    errno = ENOMEM;
    return -1;
  }
  ssize_t moved = read(source, buffer, limit < kBufferBytes ? limit : kBufferBytes);
  if (moved > 0 && !write_fully(target, buffer, (size_t)moved)) moved = -1;
  const int error = errno;
  free(buffer);
  errno = error;
  return moved;
}

/* The answers of a kernel or filesystem that does not know a call, or not for these two files. */
static bool not_offered(int error) {
  return error == ENOSYS || error == EINVAL || error == EXDEV || error == EOPNOTSUPP ||
         error == EPERM || error == EBADF || error == ETXTBSY;
}

/* Repeats a step until `*left` bytes are moved or the source ends. */
static int repeat(Step* step, int source, int target, int64_t* left) {
  while (*left > 0) {
    const ssize_t moved = step(source, target, *left < kStepBytes ? (size_t)*left : kStepBytes);
    if (moved == 0) return 0;
    if (moved > 0) *left -= moved;
    if (moved < 0 && errno != EINTR) return errno;
  }
  return 0;
}

/* Both descriptors stand where the last step left them, so the next way goes on from there. */
static int move(int source, int target, int64_t left) {
  int error = repeat(step_by_copy_file_range, source, target, &left);
  if (not_offered(error)) error = repeat(step_by_sendfile, source, target, &left);
  if (not_offered(error)) error = repeat(step_by_read_and_write, source, target, &left);
  return error;
}

static int move_range(int source, int target, off_t from, off_t to) {
  if (lseek(source, from, SEEK_SET) < 0 || lseek(target, from, SEEK_SET) < 0) return errno;
  return move(source, target, to - from);
}

/* Only what lies between the holes; the size then makes the last hole. */
static int move_data(int source, int target, off_t size) {
  int error = 0;
  off_t end = 0;
  while (error == 0 && end < size) {
    const off_t start = lseek(source, end, SEEK_DATA);
    if (start < 0 && errno != ENXIO) return errno;
    if (start < 0) break; /* ENXIO: no data any more */
    end = lseek(source, start, SEEK_HOLE);
    error = end < 0 ? errno : move_range(source, target, start, end);
  }
  if (error == 0 && ftruncate(target, size) != 0) error = errno;
  return error;
}

static bool has_holes(const struct stat* facts) {
  return S_ISREG(facts->st_mode) && facts->st_blocks < facts->st_size / kBlockBytes;
}

static bool can_have_holes(int target) {
  struct stat facts;
  return fstat(target, &facts) == 0 && S_ISREG(facts.st_mode);
}

int posix_copy_bytes(int source, int target, const struct stat* facts) {
  int64_t endless = INT64_MAX;
  /* Files of /proc and /sys say that they are empty, and copy_file_range believes them. */
  if (facts->st_size == 0) return repeat(step_by_read_and_write, source, target, &endless);
  if (has_holes(facts) && can_have_holes(target)) return move_data(source, target, facts->st_size);
  return move(source, target, endless);
}
