#include "failure.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void posix_succeed(TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }

void posix_fail(TF_Status* status, int error, const char* path) {
  TF_SetStatusFromIOError(status, error, path);
}

void posix_fail_both(TF_Status* status, int error, const char* source, const char* target) {
  char paths[2 * PATH_MAX + sizeof(" -> ")];
  snprintf(paths, sizeof(paths), "%s -> %s", source, target);
  posix_fail(status, error, paths);
}

void posix_refuse(TF_Status* status, TF_Code code, const char* path, const char* reason) {
  const size_t room = strlen(path) + strlen(reason) + sizeof("; ");
  char* message = malloc(room);
  if (message == NULL) {
    TF_SetStatus(status, code, reason);
    return;
  }
  snprintf(message, room, "%s; %s", path, reason);
  TF_SetStatus(status, code, message);
  free(message);
}
