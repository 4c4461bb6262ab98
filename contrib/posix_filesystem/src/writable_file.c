/* Writing at the end of a file, through a buffer of our own that gathers small appends.
 *
 * A failed write stays: every later operation, close included, reports it again, so that a file
 * with a hole never looks complete. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "operations.h"

/* Measured: appends of 100 bytes gain nothing beyond it, and bigger ones bypass it. */
enum { kBufferBytes = 64 * 1024 };

typedef struct Writer {
  int descriptor;  /* -1 once closed */
  int error;       /* errno of the first failed write; 0 while all is well */
  size_t buffered; /* bytes waiting in `buffer` */
  char* buffer;    /* made by the first append that is small enough for it */
  char path[];
} Writer;

static void open_writer(const char* path, int flags, TF_WritableFile* file, TF_Status* status) {
  const size_t path_bytes = strlen(path) + 1;
  Writer* writer = calloc(1, sizeof(Writer) + path_bytes);
  if (writer == NULL) return posix_fail(status, ENOMEM, path);
  writer->descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
  if (writer->descriptor < 0) {
    posix_fail(status, errno, path);
    free(writer);
    return;
  }
  memcpy(writer->path, path, path_bytes);
  file->plugin_file = writer;
  posix_succeed(status);
}

void posix_new_writable_file(const TF_Filesystem* filesystem, const char* path,
                             TF_WritableFile* file, TF_Status* status) {
  (void)filesystem;
  open_writer(path, O_TRUNC, file, status);
}

void posix_new_appendable_file(const TF_Filesystem* filesystem, const char* path,
                               TF_WritableFile* file, TF_Status* status) {
  (void)filesystem;
  open_writer(path, O_APPEND, file, status);
  /* The kernel moves to the end at the first write; tell must say where that will be before it. */
  if (TF_GetCode(status) == TF_OK) {
    lseek(((Writer*)file->plugin_file)->descriptor, 0, SEEK_END);
  }
}

/* Drops `done` bytes from the front of two pieces. */
static void advance(struct iovec pieces[2], size_t done) {
  for (int i = 0; i < 2; ++i) {
    const size_t step = done < pieces[i].iov_len ? done : pieces[i].iov_len;
    pieces[i].iov_base = (char*)pieces[i].iov_base + step;
    pieces[i].iov_len -= step;
    done -= step;
  }
}

/* Hands the buffered bytes and then `n` more to the kernel, in one call where it takes them. */
static void write_through(Writer* writer, const char* bytes, size_t n) {
  struct iovec pieces[2] = {{writer->buffer, writer->buffered}, {(char*)bytes, n}};
  while (writer->error == 0 && pieces[0].iov_len + pieces[1].iov_len > 0) {
    const ssize_t done = writev(writer->descriptor, pieces, 2);
    if (done > 0) {
      advance(pieces, (size_t)done);
    } else if (done == 0) {
      writer->error = EIO; /* it would take nothing for ever */
    } else if (errno != EINTR) {
      writer->error = errno;
    }
  }
  writer->buffered = 0;
}

/* Only the memory for it is allocated here: without it appends go straight to the kernel. */
static bool fits_in_buffer(Writer* writer, size_t n) {
  if (n > kBufferBytes - writer->buffered) return false;
  if (writer->buffer == NULL) writer->buffer = malloc(kBufferBytes);
  return writer->buffer != NULL;
}

static void add(Writer* writer, const char* bytes, size_t n) {
  if (!fits_in_buffer(writer, n)) return write_through(writer, bytes, n);
  memcpy(writer->buffer + writer->buffered, bytes, n);
  writer->buffered += n;
}

/* True when the file is open and no write has failed; else `status` says which it is. */
static bool usable(const Writer* writer, TF_Status* status) {
  if (writer->descriptor < 0) {
    posix_refuse(status, TF_FAILED_PRECONDITION, writer->path, "the file is closed");
  } else if (writer->error != 0) {
    posix_fail(status, writer->error, writer->path);
  } else {
    posix_succeed(status);
    return true;
  }
  return false;
}

void posix_writable_append(const TF_WritableFile* file, const char* buffer, size_t n,
                           TF_Status* status) {
  Writer* writer = file->plugin_file;
  if (!usable(writer, status) || n == 0) return; /* with n == 0 `buffer` may be anything */
  add(writer, buffer, n);
  usable(writer, status);
}

/* Asked from the kernel, since another appender may have moved the end. */
int64_t posix_writable_tell(const TF_WritableFile* file, TF_Status* status) {
  const Writer* writer = file->plugin_file;
  if (!usable(writer, status)) return -1;
  const off_t position = lseek(writer->descriptor, 0, SEEK_CUR);
  if (position >= 0) return position + (int64_t)writer->buffered;
  posix_fail(status, errno, writer->path);
  return -1;
}

void posix_writable_flush(const TF_WritableFile* file, TF_Status* status) {
  Writer* writer = file->plugin_file;
  if (!usable(writer, status)) return;
  write_through(writer, NULL, 0);
  usable(writer, status);
}

/* Pipes and most devices have nothing to sync and answer EINVAL. */
void posix_writable_sync(const TF_WritableFile* file, TF_Status* status) {
  Writer* writer = file->plugin_file;
  posix_writable_flush(file, status);
  if (TF_GetCode(status) != TF_OK) return;
  int done;
  do {
    done = fsync(writer->descriptor);
  } while (done != 0 && errno == EINTR);
  if (done != 0 && errno != EINVAL) writer->error = errno;
  usable(writer, status);
}

/* The descriptor is gone after this, whatever came out. Returns the first errno of the writer. */
static int finish(Writer* writer) {
  write_through(writer, NULL, 0);
  if (close(writer->descriptor) != 0 && writer->error == 0 && errno != EINTR) {
    writer->error = errno; /* network filesystems report lost writes only here */
  }
  writer->descriptor = -1;
  return writer->error;
}

void posix_writable_close(const TF_WritableFile* file, TF_Status* status) {
  Writer* writer = file->plugin_file;
  if (writer->descriptor < 0) {
    usable(writer, status);
    return;
  }
  const int error = finish(writer);
  if (error != 0) return posix_fail(status, error, writer->path);
  posix_succeed(status);
}

/* An abandoned file keeps what was appended to it. */
void posix_writable_cleanup(TF_WritableFile* file) {
  Writer* writer = file->plugin_file;
  if (writer == NULL) return;
  if (writer->descriptor >= 0) finish(writer);
  free(writer->buffer);
  free(writer);
  file->plugin_file = NULL;
}
