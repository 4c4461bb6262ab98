/* A plugin that writes an offer of its own into the report of its process: lists in lists, as deep as
 * DEPTH says. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "modular_tf/filesystem.h"

enum { kReport = 3 };

void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  memset(info, 0, sizeof *info);
  const char* depth = getenv("DEPTH");
  if (depth == NULL) return;
  const size_t count = (size_t)atoi(depth);
  const char begin[] = "{\"offer\": ";
  const size_t length = sizeof begin - 1 + 2 * count + 2;
  char* line = malloc(length);
  if (line == NULL) return;
  memcpy(line, begin, sizeof begin - 1);
  memset(line + sizeof begin - 1, '[', count);
  memset(line + sizeof begin - 1 + count, ']', count);
  memcpy(line + length - 2, "}\n", 2);
  if (write(kReport, line, length) < 0) abort();
  free(line);
}
