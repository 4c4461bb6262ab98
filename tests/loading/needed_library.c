// A library that another needs, or the one that needs it. Each leaves a file of its name where
// TRACES says when it is mapped.

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

static int others_were_first;

#ifdef ANSWER
PUBLIC int answer(void) { return ANSWER; }
PUBLIC int is_ready;
#define NOTE_ORDER() (is_ready = 1)
#else
int answer(void);
extern int is_ready;
PUBLIC int ask(void) { return others_were_first ? answer() : -1; }
PUBLIC void TF_InitPlugin(void *info) { (void)info; }
#define NOTE_ORDER() (others_were_first = is_ready)
#endif

__attribute__((constructor)) static void leave_trace(void) {
  char path[4096];
  const char *folder = getenv("TRACES");
  NOTE_ORDER();
  if (folder == NULL) return;
  snprintf(path, sizeof path, "%s/%s", folder, NAME);
  close(open(path, O_CREAT | O_WRONLY, 0600));
  (void)others_were_first;
}
