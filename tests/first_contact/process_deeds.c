#define _GNU_SOURCE
#include "process_deeds.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static void need(int is_done) {
  if (!is_done) abort();
}

static void on_alarm(int number) { (void)number; }

void limit(int kind, unsigned long limit) {
  struct rlimit limits;
  need(getrlimit(kind, &limits) == 0);
  limits.rlim_cur = limit;
  need(setrlimit(kind, &limits) == 0);
}

void pin_limit(int kind) {
  struct rlimit limits;
  need(getrlimit(kind, &limits) == 0);
  limits.rlim_max = limits.rlim_cur;
  need(setrlimit(kind, &limits) == 0);
}

void set_alarm(int seconds, int is_handled) {
  if (is_handled) signal(SIGALRM, on_alarm);
  alarm(seconds);
}

static void start_timer(struct sigevent* event) {
  const struct itimerspec late = {.it_value = {.tv_sec = 3600}};
  timer_t timer;
  need(timer_create(CLOCK_MONOTONIC, event, &timer) == 0);
  need(timer_settime(timer, 0, &late, NULL) == 0);
}

void create_timer(int number) {
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};
  start_timer(&event);
}

void create_timer_of_this_thread(int number) {
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = number};
  event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
  start_timer(&event);
}

static void on_time(union sigval value) { (void)value; }

void create_thread_timer(void) {
  struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_time};
  start_timer(&event);
}

void* wait_for_any_child(void* nothing) {
  while (waitpid(-1, NULL, 0) > 0) continue;
  return nothing;
}

int open_nothing(void) { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

void use_up(int (*take)(void), int count) {
  while (count-- > 0 && take() >= 0) continue;
}

/* No two neighbours have the same rights, so each is a mapping of its own. */
void map_pages(int count) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* pages = mmap(NULL, page * (size_t)count, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  need(pages != MAP_FAILED);
  for (int i = 0; i < count; i += 2) mprotect(pages + page * (size_t)i, page, PROT_READ);
}

void set_close_on_exec(int first, int last, int is_set) {
  for (int fd = first; fd <= last; ++fd) fcntl(fd, F_SETFD, is_set ? FD_CLOEXEC : 0);
}

void change_user(void) { need(setresuid(NOBODY, NOBODY, NOBODY) == 0); }

void change_groups(void) {
  const gid_t group = NOBODY;
  need(setgroups(1, &group) == 0);
}

void change_root(void) {
  char folder[] = "/tmp/rootXXXXXX";
  need(mkdtemp(folder) != NULL && chdir(folder) == 0 && rmdir(folder) == 0 && chroot(".") == 0);
}

/* An ordinary user has the right to others in a user namespace of its own only. */
void leave_namespace(int flags) { need(unshare(geteuid() == 0 ? flags : flags | CLONE_NEWUSER) == 0); }

void hide_proc(void) {
  leave_namespace(CLONE_NEWNS);
  need(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
  need(mount("none", "/proc", "tmpfs", 0, NULL) == 0);
}

void filter_calls(int refuses_open) {
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refuses_open ? SYS_openat : SYS_acct, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
  need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  need(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

void trace_me(void) { need(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0); }

void end_with_parent(void) { need(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0); }

void take_processors(void) {
  cpu_set_t processors;
  need(sched_getaffinity(0, sizeof processors, &processors) == 0);
  int first = 0;
  while (!CPU_ISSET(first, &processors)) ++first;
  CPU_ZERO(&processors);
  CPU_SET(first, &processors);
  need(sched_setaffinity(0, sizeof processors, &processors) == 0);
}

void make_output_non_blocking(void) {
  need(fcntl(1, F_SETFL, fcntl(1, F_GETFL) | O_NONBLOCK) == 0);
}

static void nothing(void) {}
static void crash(void) { abort(); }

void call_at_fork(int crashes) { need(pthread_atfork(nothing, nothing, crashes ? crash : nothing) == 0); }
