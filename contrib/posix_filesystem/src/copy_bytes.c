#include "copy_bytes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum { kStepBytes = 1 << 30, kBufferBytes = 256 * 1024, kBlockBytes = 512 };

/* One copy under way. Both descriptors stand where the last step left them, so that one way of
 * moving bytes goes on where another gave up. */
typedef struct Move {
  int source;
  int target;
  bool ended; /* a read found the end of the source */
} Move;

/* Lets the kernel move up to `limit` bytes: returns how many it moved, 0 at the end, -1 with errno. */
typedef ssize_t Step(int source, int target, size_t limit);

static ssize_t step_by_copy_file_range(int source, int target, size_t limit) {
  return copy_file_range(source, NULL, target, NULL, limit, 0);
}

static ssize_t step_by_sendfile(int source, int target, size_t limit) {
  return sendfile(target, source, NULL, limit);
}

static size_t at_most(int64_t left, size_t limit) {
  return left < (int64_t)limit ? (size_t)left : limit;
}

/* Repeats a step until `*left` bytes are moved or it finds the end. Returns 0 or an errno. */
static int repeat(Step* step, const Move* move, int64_t* left) {
  while (*left > 0) {
    const ssize_t moved = step(move->source, move->target, at_most(*left, kStepBytes));
    if (moved == 0) return 0;
    if (moved > 0) *left -= moved;
    if (moved < 0 && errno != EINTR) return errno;
  }
  return 0;
}

/* The answers of a kernel or filesystem that does not know a call, or not for these two files. */
static bool not_offered(int error) {
  return error == ENOSYS || error == EINVAL || error == EXDEV || error == EOPNOTSUPP ||
         error == EPERM || error == EBADF || error == ETXTBSY;
}

/* Returns 0 or an errno. */
static int write_fully(int target, const char* bytes, size_t n) {
  while (n > 0) {
    const ssize_t done = write(target, bytes, n);
    if (done == 0) return EIO; /* it would for ever */
    if (done < 0 && errno != EINTR) return errno;
    if (done > 0) {
      bytes += done;
      n -= (size_t)done;
    }
  }
  return 0;
}

/* Moves bytes through `buffer`. Only here an end is believed: the kernel's own ways go by the size
 * that it has noted, which is wrong for its own files. */
static int read_and_write(Move* move, char* buffer, int64_t left) {
  while (left > 0) {
    const ssize_t got = read(move->source, buffer, at_most(left, kBufferBytes));
    if (got == 0) break;
    if (got < 0 && errno != EINTR) return errno;
    const int error = got > 0 ? write_fully(move->target, buffer, (size_t)got) : 0;
    if (error != 0) return error;
    if (got > 0) left -= got;
  }
  move->ended = left > 0;
  return 0;
}

static int move_by_reading(Move* move, int64_t left) {
  char* buffer = malloc(kBufferBytes);
  if (buffer == NULL) return ENOMEM;
  const int error = read_and_write(move, buffer, left);
  free(buffer);
  return error;
}

/* Moves `left` bytes, or fewer when the source ends before. */
static int move_bytes(Move* move, int64_t left) {
  int error = repeat(step_by_copy_file_range, move, &left);
  if (not_offered(error)) error = repeat(step_by_sendfile, move, &left);
  if (error != 0 && !not_offered(error)) return error;
  return left > 0 ? move_by_reading(move, left) : 0;
}

static int go_to(const Move* move, off_t offset) {
  const bool done = lseek(move->source, offset, SEEK_SET) >= 0 &&
                    lseek(move->target, offset, SEEK_SET) >= 0;
  return done ? 0 : errno;
}

static int move_rest(Move* move, off_t offset) {
  const int error = go_to(move, offset);
  return error != 0 ? error : move_bytes(move, INT64_MAX);
}

static bool has_byte_at(int source, off_t offset) {
  char byte;
  return offset >= 0 && pread(source, &byte, 1, offset) == 1;
}

/* No data follows `offset` in a file of `size` bytes, it is said. */
static int make_last_hole(Move* move, off_t offset, off_t size) {
  if (size <= offset || !has_byte_at(move->source, size - 1)) return move_rest(move, offset);
  return ftruncate(move->target, size) == 0 ? 0 : errno;
}

/* Where the data that begins at `start` ends; far away where nobody knows. */
static off_t end_of_data(int source, off_t start) {
  const off_t end = lseek(source, start, SEEK_HOLE);
  return end < 0 ? INT64_MAX : end;
}

/* Only what lies between the holes. The size is asked for first: what is appended after that is
 * data, and no part of a hole. */
static int move_data(Move* move) {
  struct stat now;
  off_t end = 0;
  while (!move->ended) {
    if (fstat(move->source, &now) != 0) return errno;
    const off_t start = lseek(move->source, end, SEEK_DATA);
    if (start < 0 && errno == ENXIO) return make_last_hole(move, end, now.st_size);
    if (start < 0) return move_rest(move, end);
    end = end_of_data(move->source, start);
    int error = go_to(move, start);
    if (error == 0) error = move_bytes(move, end - start);
    if (error != 0) return error;
  }
  return 0;
}

static bool has_holes(const struct stat* facts) {
  return S_ISREG(facts->st_mode) && facts->st_blocks < facts->st_size / kBlockBytes;
}

static bool can_have_holes(int target) {
  struct stat facts;
  return fstat(target, &facts) == 0 && S_ISREG(facts.st_mode);
}

int posix_copy_bytes(int source, int target, const struct stat* facts) {
  Move move = {source, target, false};
  if (facts->st_size == 0) return move_by_reading(&move, INT64_MAX); /* as files of /proc say */
  if (has_holes(facts) && can_have_holes(target)) return move_data(&move);
  return move_bytes(&move, INT64_MAX);
}
