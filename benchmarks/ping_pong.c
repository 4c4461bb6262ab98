/* Two processes that take turns, by what the kernel offers: what no call of a worker can be faster than.
 *
 * It writes the names of its cases as JSON; for each name that it reads it writes the microseconds of a
 * turn there and back. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 100, HEADER = 64, PAYLOAD = 64, ROOM = 16384 };

typedef struct {
  const char* name;
  void (*ask)(void);
  void (*answer)(void);
} Case;

static struct {
  _Atomic uint32_t turn;
}* shared;
static int ends[2], events[2], pipes[2][2];
static char header[HEADER], payload[ROOM];

static void send_parts(int socket) {
  struct iovec parts[] = {{header, HEADER}, {payload, PAYLOAD}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  if (sendmsg(socket, &message, MSG_NOSIGNAL) < 0) _exit(1);
}

static void receive_parts(int socket) {
  char control[32];
  struct iovec parts[] = {{header, HEADER}, {payload, ROOM}};
  struct msghdr message = {
      .msg_iov = parts, .msg_iovlen = 2, .msg_control = control, .msg_controllen = sizeof control};
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) <= 0) _exit(1);
}

static void ask_by_message(void) {
  send_parts(ends[0]);
  receive_parts(ends[0]);
}

static void answer_by_message(void) {
  receive_parts(ends[1]);
  send_parts(ends[1]);
}

static void checked(ssize_t done) {
  if (done <= 0) _exit(1);
}

static void ask_by_event(void) {
  uint64_t one = 1;
  checked(write(events[0], &one, sizeof one));
  checked(read(events[1], &one, sizeof one));
}

static void answer_by_event(void) {
  uint64_t one = 1;
  checked(read(events[0], &one, sizeof one));
  checked(write(events[1], &one, sizeof one));
}

static void ask_by_pipe(void) {
  char one = 1;
  checked(write(pipes[0][1], &one, 1));
  checked(read(pipes[1][0], &one, 1));
}

static void answer_by_pipe(void) {
  char one = 1;
  checked(read(pipes[0][0], &one, 1));
  checked(write(pipes[1][1], &one, 1));
}

static void hand_over(uint32_t turn) {
  atomic_store(&shared->turn, turn);
  syscall(SYS_futex, &shared->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void wait_for(uint32_t turn) {
  while (atomic_load(&shared->turn) != turn)
    syscall(SYS_futex, &shared->turn, FUTEX_WAIT, 1 - turn, NULL, NULL, 0);
}

static void ask_by_futex(void) {
  hand_over(1);
  wait_for(0);
}

static void answer_by_futex(void) {
  wait_for(1);
  hand_over(0);
}

static const Case cases[] = {
    {"bare: message through a socket", ask_by_message, answer_by_message},
    {"bare: byte through a pipe", ask_by_pipe, answer_by_pipe},
    {"bare: eventfd", ask_by_event, answer_by_event},
    {"bare: futex", ask_by_futex, answer_by_futex},
};
enum { CASES = sizeof cases / sizeof *cases };

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static double timed(const Case* this) {
  const double start = now_us();
  for (int i = 0; i < TURNS; ++i) this->ask();
  return (now_us() - start) / TURNS;
}

int main(void) {
  char name[128];
  pid_t answering[CASES];
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0 || pipe(pipes[0]) != 0 ||
      pipe(pipes[1]) != 0)
    return 1;
  for (int i = 0; i < 2; ++i) events[i] = eventfd(0, 0);
  for (int i = 0; i < CASES; ++i) {
    answering[i] = fork();
    if (answering[i] == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) cases[i].answer();
    }
    printf("%s\"%s\"", i == 0 ? "[" : ", ", cases[i].name);
  }
  printf("]\n");
  fflush(stdout);
  while (fgets(name, sizeof name, stdin) != NULL) {
    name[strcspn(name, "\n")] = '\0';
    for (int i = 0; i < CASES; ++i)
      if (strcmp(name, cases[i].name) == 0) printf("%f\n", timed(&cases[i]));
    fflush(stdout);
  }
  for (int i = 0; i < CASES; ++i) kill(answering[i], SIGKILL);
  return 0;
}
