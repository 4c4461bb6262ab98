#define _POSIX_C_SOURCE 200809L
#include "report.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((destructor)) static void report(void) {
  const char* path = getenv("FIXTURE_REPORT");
  int file = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (file < 0) return;
  char line[1024];
  if (write(file, line, (size_t)ledger_describe(line, sizeof(line))) < 0) perror(path);
  close(file);
}
