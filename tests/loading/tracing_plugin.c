// A library that tells by its constructor that it was mapped: it makes a file of its name.

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void leave_trace(void) {
  char path[4096];
  const char *folder = getenv("TRACES");
  if (folder == NULL) return;
  snprintf(path, sizeof path, "%s/%s", folder, NAME);
  close(open(path, O_CREAT | O_WRONLY, 0600));
}

__attribute__((visibility("default"))) void TF_InitPlugin(void *info) { (void)info; }
