// A plugin that opens a library by name in its constructor, or the library that it opens. The
// second calls a function of the host, and one that the host need not have.

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

#define PUBLIC __attribute__((visibility("default")))

#ifdef OPENED
void *TF_NewStatus(void);
void TF_DeleteStatus(void *status);
#ifdef MISSING
long MISSING(void);
PUBLIC long call_missing(void) { return MISSING(); }
#endif
PUBLIC int answer(void) {
  void *status = TF_NewStatus();
  TF_DeleteStatus(status);
  return status == NULL ? -1 : OPENED;
}
#else
static void *opened;

static void open_one(void) {
  opened = dlopen(FIRST, RTLD_NOW);
}

#ifdef IN_INIT
PUBLIC void TF_InitPlugin(void *info) { (void)info; open_one(); }
#else
PUBLIC void TF_InitPlugin(void *info) { (void)info; }
__attribute__((constructor)) static void open_at_once(void) { open_one(); }
#endif

#ifndef ASK
#define ASK ask
#endif
PUBLIC int ASK(void) {
  if (opened == NULL) return 0;
  int (*answer)(void) = (int (*)(void))dlsym(opened, "answer");
  return answer == NULL ? -2 : answer();
}
#endif
