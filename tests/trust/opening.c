/* What is linked into a plugin that opens another library by itself, or is that library.
 *
 * Each tells of its deeds by files where TRACES says: NAME when it is mapped, `init` when its
 * TF_InitPlugin is called. OPENS_IN_CONSTRUCTOR and OPENS_IN_INIT name what a plugin opens; with
 * CLOSES it closes that again. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

static void leave_trace(const char *name) {
  char path[4096];
  const char *folder = getenv("TRACES");
  if (folder == NULL) return;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  close(open(path, O_CREAT | O_WRONLY, 0600));
}

#ifdef IS_PLUGIN
void fixture_init(void *info);

static void open_what_is_named(const char *variable) {
  const char *path = getenv(variable);
  void *library = path == NULL ? NULL : dlopen(path, RTLD_NOW);
  if (library != NULL && getenv("CLOSES") != NULL) dlclose(library);
}

PUBLIC void TF_InitPlugin(void *info) {
  leave_trace("init");
  open_what_is_named("OPENS_IN_INIT");
  fixture_init(info);
}
#else
PUBLIC int wanted(void) { return VALUE; }
#endif

__attribute__((constructor)) static void begin(void) {
  leave_trace(NAME);
#ifdef IS_PLUGIN
  open_what_is_named("OPENS_IN_CONSTRUCTOR");
#endif
}
