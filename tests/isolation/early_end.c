// A recvmsg() that gives the end of a socket before the error that belongs to it, as a receiver can see it who comes
// between the two steps of the kernel.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/socket.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED atomic_int errors_kept_back = 0;  // how often
static _Thread_local int kept_back = -1;   // the socket whose error comes next

EXPORTED ssize_t recvmsg(int socket, struct msghdr* message, int flags) {
  ssize_t (*real)(int, struct msghdr*, int) = (ssize_t(*)(int, struct msghdr*, int))dlsym(RTLD_NEXT, "recvmsg");
  const ssize_t got = real(socket, message, flags);
  if (got >= 0 || errno != ECONNRESET) return got;
  kept_back = socket;
  atomic_fetch_add(&errors_kept_back, 1);
  return 0;
}

EXPORTED ssize_t recv(int socket, void* buffer, size_t size, int flags) {
  ssize_t (*real)(int, void*, size_t, int) = (ssize_t(*)(int, void*, size_t, int))dlsym(RTLD_NEXT, "recv");
  if (socket != kept_back) return real(socket, buffer, size, flags);
  kept_back = -1;
  errno = ECONNRESET;
  return -1;
}
