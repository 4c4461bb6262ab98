// A socketpair() behind which another thread forks: the child keeps both ends, until its parent ends.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int forks_next = 0;

EXPORTED int socketpair(int domain, int type, int protocol, int ends[2]) {
  int (*real)(int, int, int, int*) = (int (*)(int, int, int, int*))dlsym(RTLD_NEXT, "socketpair");
  const int done = real(domain, type, protocol, ends);
  if (forks_next == 0) return done;
  forks_next = 0;
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  return done;
}
