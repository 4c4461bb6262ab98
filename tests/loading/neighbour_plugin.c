// A library that looks for another beside it when it is asked, in one of two ways.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

PUBLIC void TF_InitPlugin(void *info) { (void)info; }

#if defined(ASKS_LINKER)
// By the search path that it was linked with.
PUBLIC int find_neighbour(void) { return dlopen("libneighbour.so", RTLD_NOW) != NULL; }
#elif defined(ASKS_DLADDR)
// By the path that it was loaded from.
PUBLIC int find_neighbour(void) {
  Dl_info info;
  char path[4096];
  if (dladdr((void *)find_neighbour, &info) == 0) return 0;
  const char *slash = strrchr(info.dli_fname, '/');
  snprintf(path, sizeof path, "%.*s/libneighbour.so", (int)(slash - info.dli_fname),
           info.dli_fname);
  return dlopen(path, RTLD_NOW) != NULL;
}
#endif
