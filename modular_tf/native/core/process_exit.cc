#include "process_exit.h"

#include <unistd.h>  // vfork

#include <cstdio>
#include <cstdlib>

#ifdef __GLIBC__
namespace {

// As exit() it waits for no thread that holds a stream.
void leave(int status, void*) {
  fcloseall();
  _exit(status);
}

}  // namespace
#endif

// Handlers run last registered first, and only glibc's on_exit is told the status.
extern "C" int mtf_exit_without_inherited_destructors(void) {
#ifdef __GLIBC__
  return on_exit(leave, nullptr) == 0 ? 0 : -1;
#else
  return -1;
#endif
}

extern "C" void mtf_flush_output(void) {
  if (ftrylockfile(stdout) != 0) return;
  std::fflush(stdout);
  funlockfile(stdout);
}

extern "C" int mtf_start_ended_child(void) {
  const pid_t child = vfork();
  if (child == 0) _exit(0);
  return child;
}
