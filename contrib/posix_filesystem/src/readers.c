/* Reading: at any offset, one pread per call, no buffer and no shared position between threads; and as
 * memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "operations.h"

typedef struct Reader {
  int descriptor;
  char path[]; /* for the messages of failing reads */
} Reader;

/* open(2) opens directories for reading too; their first read would fail, which is too late. */
static int open_for_reading(const char* path) {
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return -1;
  struct stat facts;
  const int error = fstat(descriptor, &facts) != 0 ? errno : S_ISDIR(facts.st_mode) ? EISDIR : 0;
  if (error == 0) return descriptor;
  close(descriptor);
  errno = error;
  return -1;
}

void posix_new_random_access_file(const TF_Filesystem* filesystem, const char* path,
                                  TF_RandomAccessFile* file, TF_Status* status) {
  (void)filesystem;
  const size_t path_bytes = strlen(path) + 1;
  Reader* reader = malloc(sizeof(Reader) + path_bytes);
  if (reader == NULL) return posix_fail(status, ENOMEM, path);
  reader->descriptor = open_for_reading(path);
  if (reader->descriptor < 0) {
    posix_fail(status, errno, path);
    free(reader);
    return;
  }
  memcpy(reader->path, path, path_bytes);
  file->plugin_file = reader;
  posix_succeed(status);
}

void posix_random_access_cleanup(TF_RandomAccessFile* file) {
  Reader* reader = file->plugin_file;
  if (reader == NULL) return;
  close(reader->descriptor);
  free(reader);
  file->plugin_file = NULL;
}

/* How many of `n` bytes a file can have from `offset` on: none is longer than INT64_MAX, and the
 * kernel takes what would end behind that for a mistake. */
static size_t possible_bytes(uint64_t offset, size_t n) {
  const uint64_t left = offset < INT64_MAX ? INT64_MAX - offset : 0;
  return n < left ? n : (size_t)left;
}

/* The kernel may give fewer bytes than asked (2 GiB is its limit per call): only 0 is the end.
 * Returns the bytes read, or -1 with errno. */
static ssize_t read_fully(int descriptor, uint64_t offset, size_t n, char* buffer) {
  size_t done = 0;
  while (done < n) {
    const ssize_t got = pread(descriptor, buffer + done, n - done, (off_t)(offset + done));
    if (got == 0) break;
    if (got > 0) {
      done += (size_t)got;
    } else if (errno != EINTR) {
      return -1;
    }
  }
  return (ssize_t)done;
}

int64_t posix_random_access_read(const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                                 char* buffer, TF_Status* status) {
  const Reader* reader = file->plugin_file;
  const size_t possible = possible_bytes(offset, n);
  const ssize_t done = read_fully(reader->descriptor, offset, possible, buffer);
  if (done < 0) {
    posix_fail(status, errno, reader->path);
  } else if ((size_t)done < n) {
    TF_SetStatus(status, TF_OUT_OF_RANGE, "end of file");
  } else {
    posix_succeed(status);
  }
  return done;
}

/* -- a file as memory: the kernel's page cache itself, mapped; nothing is copied.
 *
 * The mapping survives the deletion of the file. Whoever shortens the file in place takes pages
 * away from under it, and touching those raises SIGBUS: replace files by rename instead -- */

typedef struct Region {
  void* data;
  size_t length;
} Region;

/* 0 when the file can be mapped, else the errno that says why not. */
static int mappable(int descriptor, struct stat* facts) {
  if (fstat(descriptor, facts) != 0) return errno;
  if (S_ISDIR(facts->st_mode)) return EISDIR;
  return facts->st_size == 0 ? EINVAL : 0; /* no memory is 0 bytes long */
}

/* 0 and a mapped region, or an errno. The mapping outlives the descriptor. */
static int map_file(const char* path, Region* region) {
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  struct stat facts;
  int error = mappable(descriptor, &facts);
  if (error == 0) {
    region->length = (size_t)facts.st_size;
    region->data = mmap(NULL, region->length, PROT_READ, MAP_SHARED, descriptor, 0);
    error = region->data == MAP_FAILED ? errno : 0;
    if (error == ENODEV) error = ENOTSUP; /* it is there, and cannot be mapped, as files of /sys */
  }
  close(descriptor);
  return error;
}

void posix_new_region(const TF_Filesystem* filesystem, const char* path,
                      TF_ReadOnlyMemoryRegion* region, TF_Status* status) {
  (void)filesystem;
  Region* mapped = malloc(sizeof(Region));
  const int error = mapped == NULL ? ENOMEM : map_file(path, mapped);
  if (error != 0) {
    posix_fail(status, error, path);
    free(mapped);
    return;
  }
  region->plugin_memory_region = mapped;
  posix_succeed(status);
}

void posix_region_cleanup(TF_ReadOnlyMemoryRegion* region) {
  Region* mapped = region->plugin_memory_region;
  if (mapped == NULL) return;
  munmap(mapped->data, mapped->length);
  free(mapped);
  region->plugin_memory_region = NULL;
}

const void* posix_region_data(const TF_ReadOnlyMemoryRegion* region) {
  return ((const Region*)region->plugin_memory_region)->data;
}

uint64_t posix_region_length(const TF_ReadOnlyMemoryRegion* region) {
  return ((const Region*)region->plugin_memory_region)->length;
}
