#include <errno.h>
#include <sys/stat.h>

#include "local_path.h"
#include "modular_tf/env.h"

static int64_t nanoseconds(struct timespec time) {
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

void TF_FileStat(const char* filename, TF_FileStatistics* stats, TF_Status* status) {
  const char* path = mtf_local_path(filename, status);
  struct stat found;
  if (path == NULL) return;
  if (stat(path, &found) != 0) {
    TF_SetStatusFromIOError(status, errno, filename);
    return;
  }
  *stats = (TF_FileStatistics){.length = found.st_size,
                               .mtime_nsec = nanoseconds(found.st_mtim),
                               .is_directory = S_ISDIR(found.st_mode)};
}
