/* Does a MISDEED at a PLACE; each macro is one of the names of the enumerations. */
#define _GNU_SOURCE
#include "misdeed.h"
#include "later_deeds.h"
#include "process_deeds.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum misdeed {
  NOTHING, CRASH, CALL_NULL, OVERFLOW, OVERFLOW_IN_A_THREAD, CRASH_IN_THREADS, ABORT, EXIT_0, EXIT_3, LEAVE_3, HANG, SPIN, THROW, KILLED,
  CLOSE_ALL, CLOSE_OUTPUT, NOISE, UNFLUSHED, COMPLAIN, LAST_WORDS, LOOK_AROUND, SCRIBBLE, FORGE,
  FORK, DAEMON, FORK_MANY, FORK_AND_CRASH, THREAD, MANY_THREADS, READ_IN_A_THREAD,
  ALLOCATE, TOUCH_AND_FREE, ALLOCATE_ALL, RESERVE,
  CATCH_INTERRUPT, CHAIN_INTERRUPT, CATCH_FPE, DEFAULT_PIPE, IGNORE_CHILDREN, BLOCK_INTERRUPT, CHANGE_LOCALE,
  CHANGE_DIRECTORY, CHANGE_UMASK, CHANGE_ENVIRONMENT, FLUSH_TO_ZERO, TRAP_INVALID, TRAP_INVALID_X87, ROUND_UP,
  KILL_PARENT, STOP_PARENT, KILL_ANCESTORS, ESCAPE, FILL_DISK, INTERRUPT, TERMINATE, FORGE_CALL,
  FORGE_SIBLINGS, FORGE_CHANGE, FORGE_EXCUSE,
  RAISE, CATCH_QUIT, DEFAULT_SEGV, DEAFEN, SHUT_DOWN, TAKE_REPORT, KILL_ALL, STOP_ALL,
  NO_FILES, USUAL_FILES, NO_FILE_SIZE, NO_ADDRESSES, NO_QUEUES, PIN_STACK, ALARM, HANDLED_ALARM, TIMER, IGNORED_TIMER,
  CHANGE_USER, CHANGE_GROUPS, CHANGE_ROOT, LEAVE_NETWORK, LEAVE_PIDS, HIDE_PROC, FILTER,
  FILTER_OPEN, TRACE_ME, STOP_TRACED, END_WITH_PARENT, AFFINITY, NON_BLOCKING, AT_FORK, CRASH_AT_FORK,
  CRASH_LATER, ABORT_LATER, EXIT_LATER, CANCEL_LATER, CRASH_AT_EXIT, HANG_AT_EXIT, CRASH_WHEN_UNLOADED,
  HANG_WHEN_UNLOADED, OVERWRITE_TABLES_LATER, PRELOAD,
  LEAVE_0, THREAD_TIMER, FATAL_THREAD_TIMER, WAIT_FOR_ANY, WAIT_IN_A_THREAD, WATCHES, ALL_WATCHES,
  DESCRIPTORS, MOST_DESCRIPTORS, MAPPINGS, MOST_MAPPINGS, CLOSE_ON_EXEC, INHERIT,
};

static const size_t kGibibyte = (size_t)1 << 30;
static void* volatile kept; /* volatile: nothing of it is optimised away */

void fixture_throw(const char* what);

/* Writes the own process id to the file that a variable names, for the tests that end others. */
static void leave_pid(void) {
  const char* path = getenv("MISDEED_PID");
  FILE* file = path == NULL ? NULL : fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%d\n", (int)getpid());
  fclose(file);
}

/* Somebody who forgets to end, but not for ever. */
__attribute__((noreturn)) static void stay(void) {
  alarm(60);
  for (;;) pause();
}

static void start_one(int leaves_group) {
  if (fork() != 0) return;
  if (leaves_group) {
    setsid();
    if (fork() != 0) _exit(0);
  }
  leave_pid();
  stay();
}

static void make_noise(int first) {
  static const char line[] = "{\"lost\": \"nothing\"} \n";
  for (int i = 0; i < 100000; ++i)
    for (int fd = first; fd <= 2; ++fd)
      if (write(fd, line, sizeof(line) - 1) < 0) return;
}

/* What the host reports of a plugin with a clean offer of these schemes. */
#define FINDING(schemes) \
  "\"finding\": {\"incident\": null, \"offer\": {\"schemes\": [" schemes "], \"platform\": null," \
  " \"kernels\": 0, \"ops\": 0}," \
  " \"notes\": [], \"opened\": [], \"storable\": true}"

/* Writes what is no report to all that is open, so to the report too. */
static void scribble(void) {
  static char deep[65536];
  memset(deep, '[', sizeof(deep) - 1);
  for (int fd = 3; fd < 64; ++fd) {
    dprintf(fd, "5\n\xff\n\"x\"\nnull\n{\n{\"enters\": 5}\n{\"frame\": [5, 5, 5]}\n%s\n%s", deep, deep);
    dprintf(fd, "\n{\"finished\": {\"finding\": 5, \"changes\": []}, \"memory\": [0, 0, 0]}\n");
  }
}

/* Says of itself what the host would say, and does not get as far. */
static void forge(void) {
  static const char all[] =
      "{\"finished\": {" FINDING("5") ","
      " \"changes\": [[\"LD-999\", \"x\"]]}, \"memory\": [0, 0, 0]}\n";
  for (int fd = 3; fd < 64; ++fd) dprintf(fd, "%s", all);
  _exit(0);
}

/* Tells which descriptors are open, how large a core dump may be, and what the environment is. */
static void look_around(void) {
  FILE* file = fopen(getenv("MISDEED_NOTES"), "w");
  for (int fd = 0; fd < 1024; ++fd)
    if (fd != fileno(file) && fcntl(fd, F_GETFD) != -1) fprintf(file, "fd %d\n", fd);
  struct rlimit core;
  if (getrlimit(RLIMIT_CORE, &core) == 0) fprintf(file, "core %d\n", (int)core.rlim_max);
  for (char** variable = environ; *variable != NULL; ++variable) fprintf(file, "%s\n", *variable);
  fclose(file);
}

static __attribute__((noinline)) int overflow(volatile char* above) {
  volatile char here[4096];
  if (*above == '!') return 0;
  here[0] = *above;
  return overflow(here) + here[0];
}

static void* overflow_in_a_thread(void* nothing) {
  overflow("x");
  return nothing;
}

static void run_thread(void* (*routine)(void*)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, routine, NULL) == 0) pthread_join(thread, NULL);
}

static pthread_barrier_t together;

static void* crash_together(void* nothing) {
  pthread_barrier_wait(&together);
  *(volatile int*)8 = 1;
  return nothing;
}

/* Returns when one of them is done, which none is. */
static void crash_in_threads(unsigned count) {
  pthread_t thread;
  pthread_barrier_init(&together, NULL, count);
  while (count-- > 0) pthread_create(&thread, NULL, crash_together, NULL);
  pthread_join(thread, NULL);
}

static void* wait_for_ever(void* nothing) {
  while (nothing == NULL) pause();
  return nothing;
}

/* Each with a stack of 8 MiB, or what else is usual, of which it uses next to nothing. */
static void start_threads(int count) {
  pthread_t thread;
  while (count-- > 0)
    if (pthread_create(&thread, NULL, wait_for_ever, NULL) != 0) return;
}

static void* read_for_ever(void* stream) {
  char line[16];
  flockfile(stream); /* as fgets does */
  pthread_barrier_wait(&together);
  return fgets(line, sizeof line, stream);
}

static void read_in_a_thread(void) {
  int ends[2];
  pthread_t thread;
  if (pipe2(ends, O_CLOEXEC) != 0) abort();
  pthread_barrier_init(&together, NULL, 2);
  if (pthread_create(&thread, NULL, read_for_ever, fdopen(ends[0], "r")) != 0) abort();
  pthread_barrier_wait(&together);
}

static void on_signal(int number) { (void)number; }

static struct sigaction chained;

static void chain(int number) { chained.sa_handler(number); }

static void block(int number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void change_locale(void) {
  setlocale(LC_ALL, strcmp(setlocale(LC_NUMERIC, NULL), "C") == 0 ? "C.UTF-8" : "C");
  setlocale(LC_CTYPE, "C");
}

static void flush_to_zero(void) {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
}

/* Without the sticky flags that are set: those would trap at once. */
static void trap_invalid(void) {
  feclearexcept(FE_ALL_EXCEPT);
  feenableexcept(FE_INVALID);
}

static void trap_invalid_x87(void) {
#if defined(__x86_64__)
  unsigned short control;
  feclearexcept(FE_ALL_EXCEPT);
  __asm__ volatile("fnstcw %0" : "=m"(control));
  control &= (unsigned short)~1u;
  __asm__ volatile("fldcw %0" : : "m"(control));
#endif
}

/* The parent, and its parent, up to the one whose name does not tell of first contact. */
static void kill_ancestors(void) {
  int victims[8];
  int count = 0;
  for (int pid = getppid(); pid > 1 && count < 8;) {
    char path[64], words[4096] = "";
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    FILE* file = fopen(path, "r");
    if (file == NULL) break;
    size_t size = fread(words, 1, sizeof words - 1, file);
    fclose(file);
    if (memmem(words, size, "processes/start.py", 18) == NULL) break;
    victims[count++] = pid;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%*d (%*[^)]) %*c %d", &pid) != 1) pid = 0;
    if (file != NULL) fclose(file);
  }
  while (count > 0) kill(victims[--count], SIGKILL);
}

/* Whatever its ancestors have arranged for their end, this process and a daemon of it live on. */
static void escape(void) {
  prctl(PR_SET_PDEATHSIG, 0);
  start_one(1);
  kill_ancestors();
  stay();
}

/* Gives a name to its call that no terminal should see. */
static void forge_call(void) {
  static const char call[] =
      "{\"enters\": \"\\ud800\", \"memory\": [1, 1, 1]}\n"
      "{\"enters\": \"x\\u001b[31m\", \"memory\": [1, 1, 1]}\n";
  for (int fd = 3; fd < 64; ++fd) dprintf(fd, "%s", call);
  abort();
}

/* Reports a change of the process in a text of that length, which clears a terminal, and ends. */
static void forge_change(const char* rule, size_t length) {
  static char text[1 << 20];
  int used = snprintf(text, sizeof text,
                      "{\"finished\": {" FINDING("") ","
                      " \"changes\": [[\"%s\", \"\\u001b[2J\\nFORGED ", rule);
  memset(text + used, 'A', length);
  used += (int)length;
  used += snprintf(text + used, sizeof text - (size_t)used, "\"]]}, \"memory\": [0, 0, 0]}\n");
  for (int done = 0; done < used;) {
    const ssize_t written = write(3, text + done, (size_t)(used - done));
    if (written <= 0) break;
    done += (int)written;
  }
  _exit(0);
}

/* Returns what stands in a file of /proc; 0 bytes where there is none. */
static size_t read_proc(const char* pid, const char* name, char* buffer, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%.16s/%s", pid, name);
  const int fd = open(path, O_RDONLY);
  const ssize_t count = fd < 0 ? 0 : read(fd, buffer, size);
  if (fd >= 0) close(fd);
  return count < 0 ? 0 : (size_t)count;
}

/* For some seconds, reports that all is well for every process that tries another plugin: those
 * have the command line of this one. */
static void forge_siblings(void) {
  static const char all[] =
      "{\"finished\": {" FINDING("") ","
      " \"others\": [], \"changes\": []}, \"memory\": [0, 0, 0]}\n"
      "{\"finished\": {" FINDING("") ","
      " \"changes\": []}, \"memory\": [0, 0, 0]}\n";
  static char own[1 << 16], other[1 << 16];
  const size_t length = read_proc("self", "cmdline", own, sizeof own);
  for (int turn = 0; turn < 30; ++turn, usleep(100000)) {
    DIR* all_processes = opendir("/proc");
    for (struct dirent* entry; (entry = readdir(all_processes)) != NULL;) {
      if (atoi(entry->d_name) == 0 || atoi(entry->d_name) == getpid()) continue;
      if (read_proc(entry->d_name, "cmdline", other, sizeof other) != length) continue;
      if (memcmp(own, other, length) != 0) continue;
      char path[64];
      snprintf(path, sizeof path, "/proc/%.16s/fd/3", entry->d_name);
      const int fd = open(path, O_WRONLY | O_NONBLOCK);
      if (fd < 0) continue;
      if (write(fd, all, sizeof all - 1) < 0) perror("write");
      close(fd);
    }
    closedir(all_processes);
  }
}

static void fill_disk(void) {
  FILE* file = fopen(getenv("MISDEED_NOTES"), "w");
  static char block_of_zeros[1 << 16];
  const size_t size = sizeof block_of_zeros;
  if (fseeko(file, (off_t)1 << 40, SEEK_SET) == 0)
    if (fwrite(block_of_zeros, 1, size, file) < size) _exit(7);
  fclose(file);
}

/* Raises the signal that the library's file name tells: libraise_15.so. */
static void raise_by_name(void) {
  Dl_info own;
  if (dladdr((void*)raise_by_name, &own) == 0) abort();
  raise(atoi(strrchr(own.dli_fname, '_') + 1));
}

/* Lets no signal through that can be kept away, and hangs. */
static void deafen(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  for (int number = 1; number < 65; ++number) signal(number, SIG_IGN);
  for (;;) pause();
}

/* Puts a file of its own into the place of each descriptor that it did not open, and crashes. */
static void take_report(void) {
  const int file = open(getenv("MISDEED_NOTES"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  for (int fd = 3; fd < 64; ++fd)
    if (fd != file) dup2(file, fd);
  *(volatile int*)8 = 1;
}

static void allocate(size_t size, int touches) {
  kept = malloc(size);
  if (touches) memset(kept, 1, size);
}

static void misbehave(void) {
  switch (MISDEED) {
    case CRASH: *(volatile int*)8 = 1; break;
    case CALL_NULL: ((void (*)(void))kept)(); break;
    case OVERFLOW: overflow("x"); break;
    case OVERFLOW_IN_A_THREAD: run_thread(overflow_in_a_thread); break;
    case CRASH_IN_THREADS: crash_in_threads(8); break;
    case ABORT: abort();
    case EXIT_0: exit(0);
    case EXIT_3: exit(3);
    case LEAVE_3: _exit(3);
    case LEAVE_0: _exit(0);
    case HANG: leave_pid(); for (;;) pause();
    case SPIN: for (volatile int lasts = 1; lasts;) { } break;
    case THROW: fixture_throw("no such driver"); break;
    case KILLED: raise(SIGKILL); break;
    case CLOSE_ALL: for (int fd = 0; fd < 1024; ++fd) close(fd); break;
    case CLOSE_OUTPUT: close(1); break;
    case NOISE: make_noise(1); break;
    case UNFLUSHED: printf("no line's end"); break;
    case COMPLAIN: make_noise(2); break;
    case LAST_WORDS: fputs("first\n\nno driver\x1b[0m\n", stderr); _exit(3);
    case LOOK_AROUND: look_around(); break;
    case SCRIBBLE: scribble(); break;
    case FORGE: forge(); break;
    case FORK: start_one(0); break;
    case DAEMON: start_one(1); break;
    case FORK_MANY: for (int i = 0; i < 40; ++i) start_one(i % 2); for (;;) pause();
    case FORK_AND_CRASH: start_one(1); usleep(50000); *(volatile int*)8 = 1; break;
    case THREAD: start_threads(1); break;
    case MANY_THREADS: start_threads(160); break;
    case READ_IN_A_THREAD: printf("no line's end"); read_in_a_thread(); break;
    case ALLOCATE: allocate(kGibibyte, 0); break;
    case TOUCH_AND_FREE: allocate(kGibibyte, 1); free(kept); break;
    case ALLOCATE_ALL: allocate((size_t)1 << 46, 0); memset(kept, 1, 1); break;
    case RESERVE: mmap(NULL, 64 * kGibibyte, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); break;
    case CATCH_INTERRUPT: signal(SIGINT, on_signal); break;
    case CHAIN_INTERRUPT: sigaction(SIGINT, NULL, &chained); signal(SIGINT, chain); break;
    case CATCH_FPE: signal(SIGFPE, on_signal); break;
    case DEFAULT_PIPE: signal(SIGPIPE, SIG_DFL); break;
    case IGNORE_CHILDREN: signal(SIGCHLD, SIG_IGN); break;
    case BLOCK_INTERRUPT: block(SIGINT); break;
    case CHANGE_LOCALE: change_locale(); break;
    case CHANGE_DIRECTORY: if (chdir("/") != 0) abort(); break;
    case CHANGE_UMASK: umask(0777); break;
    case CHANGE_ENVIRONMENT: setenv("MISDEED", "1", 1); break;
    case FLUSH_TO_ZERO: flush_to_zero(); break;
    case TRAP_INVALID: trap_invalid(); break;
    case TRAP_INVALID_X87: trap_invalid_x87(); break;
    case ROUND_UP: fesetround(FE_UPWARD); break;
    case KILL_PARENT: kill(getppid(), SIGKILL); break;
    case STOP_PARENT: kill(getppid(), SIGSTOP); break;
    case KILL_ANCESTORS: kill_ancestors(); break;
    case ESCAPE: escape(); break;
    case INTERRUPT: kill(getpid(), SIGINT); break;
    case TERMINATE: kill(getpid(), SIGTERM); break;
    case FORGE_CALL: forge_call(); break;
    case FORGE_SIBLINGS: forge_siblings(); break;
    case FORGE_CHANGE: forge_change("LD-066", 900000); break;
    case FORGE_EXCUSE: forge_change("LD-063", 9); break;
    case RAISE: raise_by_name(); break;
    case CATCH_QUIT: signal(SIGQUIT, on_signal); break;
    case DEFAULT_SEGV: signal(SIGSEGV, SIG_DFL); break;
    case KILL_ALL: kill(-1, SIGKILL); break;
    case STOP_ALL: kill(-1, SIGSTOP); break;
    case DEAFEN: deafen(); break;
    case SHUT_DOWN: for (int fd = 3; fd < 64; ++fd) shutdown(fd, SHUT_RDWR); break;
    case TAKE_REPORT: take_report(); break;
    case NO_FILES: limit(RLIMIT_NOFILE, 0); break;
    case USUAL_FILES: limit(RLIMIT_NOFILE, 4096); break;
    case NO_FILE_SIZE: limit(RLIMIT_FSIZE, 0); break;
    case NO_ADDRESSES: limit(RLIMIT_AS, 1 << 20); break;
    case NO_QUEUES: limit(RLIMIT_MSGQUEUE, 0); break;
    case PIN_STACK: pin_limit(RLIMIT_STACK); break;
    case ALARM: set_alarm(3600, 0); break;
    case HANDLED_ALARM: set_alarm(3600, 1); break;
    case TIMER: create_timer(SIGUSR1); break;
    case IGNORED_TIMER: create_timer(SIGWINCH); break;
    case CHANGE_USER: change_user(); break;
    case CHANGE_GROUPS: change_groups(); break;
    case CHANGE_ROOT: change_root(); break;
    case LEAVE_NETWORK: leave_namespace(CLONE_NEWNET); break;
    case LEAVE_PIDS: leave_namespace(CLONE_NEWPID); break;
    case HIDE_PROC: hide_proc(); break;
    case FILTER: filter_calls(0); break;
    case FILTER_OPEN: filter_calls(1); break;
    case TRACE_ME: trace_me(); break;
    case STOP_TRACED: trace_me(); raise(SIGCHLD); break;
    case END_WITH_PARENT: end_with_parent(); break;
    case AFFINITY: take_processors(); break;
    case NON_BLOCKING: make_output_non_blocking(); break;
    case AT_FORK: call_at_fork(0); break;
    case CRASH_AT_FORK: call_at_fork(1); break;
    case FILL_DISK: fill_disk(); break;
    case CRASH_LATER: crash_later(); break;
    case ABORT_LATER: abort_later(); break;
    case EXIT_LATER: exit_later(); break;
    case CANCEL_LATER: cancel_main_thread_later(); break;
    case CRASH_AT_EXIT: crash_at_exit(); break;
    case HANG_AT_EXIT: hang_at_exit(); break;
    case CRASH_WHEN_UNLOADED: crash_when_unloaded(); break;
    case HANG_WHEN_UNLOADED: hang_when_unloaded(); break;
    case OVERWRITE_TABLES_LATER: overwrite_tables_later(); break;
    case THREAD_TIMER: create_thread_timer(); break;
    case FATAL_THREAD_TIMER: create_timer_of_this_thread(SIGUSR1); break;
    case WAIT_FOR_ANY: wait_for_any_child(NULL); break;
    case WAIT_IN_A_THREAD: run_thread(wait_for_any_child); break;
    case WATCHES: use_up(inotify_init, 24); break;
    case ALL_WATCHES: use_up(inotify_init, 1 << 20); break;
    case DESCRIPTORS: use_up(open_nothing, 300); break;
    case MOST_DESCRIPTORS: use_up(open_nothing, 900); break;
    case MAPPINGS: map_pages(10000); break;
    case MOST_MAPPINGS: map_pages(60000); break;
    case CLOSE_ON_EXEC: set_close_on_exec(1, 2, 1); break;
    case INHERIT: set_close_on_exec(3, 63, 0); break;
    case PRELOAD: setenv("LD_PRELOAD", "/nowhere/libpreloaded.so", 1); break;
    default: break;
  }
}

void misbehave_at(enum place place) {
  if (place == PLACE) misbehave();
}

static void exit_handler(void) { misbehave_at(EXIT_HANDLER); }

__attribute__((constructor)) static void constructor(void) {
  misbehave_at(CONSTRUCTOR);
  if (PLACE == EXIT_HANDLER) atexit(exit_handler);
}

__attribute__((destructor)) static void destructor(void) { misbehave_at(DESTRUCTOR); }
