/* A file as memory: the kernel's page cache itself, mapped; nothing is copied.
 *
 * The mapping survives the deletion of the file. Whoever shortens the file in place takes pages
 * away from under it, and touching those raises SIGBUS: replace files by rename instead. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.h"
#include "operations.h"

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
