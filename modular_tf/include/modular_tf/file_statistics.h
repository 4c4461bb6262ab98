/* What stat says of a path. */
#ifndef MODULAR_TF_FILE_STATISTICS_H_
#define MODULAR_TF_FILE_STATISTICS_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct TF_FileStatistics {
  int64_t length;     /* bytes; >= 0 */
  int64_t mtime_nsec; /* last change, ns since 1970-01-01 UTC */
  bool is_directory;  /* one byte; 0 or 1 */
} TF_FileStatistics;

#endif
