/* Ways in which the process ends, or its heap does, or its thread. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "deed.h"

void fixture_throw(const char* what);

static int crashes_at_exit;

__attribute__((destructor)) static void end_library(void) {
  if (crashes_at_exit) *(volatile int*)8 = 1;
}

static void segv(void) { *(volatile int*)8 = 1; }
static void exit_3(void) { exit(3); }
static void leave(void) { _exit(4); }

static __attribute__((noinline)) int overflow(volatile char* above) {
  volatile char here[4096];
  if (*above == '!') return 0;
  here[0] = *above;
  return overflow(here) + here[0];
}
static void overflow_here(void) { overflow("x"); }

static void* segv_work(void* nothing) { return segv(), nothing; }
static void segv_in_thread(void) { on_thread(segv_work, 1); }

/* The handlers of this thread have as little stack as those of Rust, behind memory that nobody may touch. */
static void* segv_on_small_stack_work(void* nothing) {
  const size_t guard = (size_t)1 << 20, page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t size = (8192 + getauxval(AT_MINSIGSTKSZ) + page - 1) / page * page;
  char* start = mmap(NULL, guard + size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const stack_t own = {.ss_sp = start + guard, .ss_size = size};
  if (mprotect(own.ss_sp, size, PROT_READ | PROT_WRITE) != 0 || sigaltstack(&own, NULL) != 0) return nothing;
  return segv(), nothing;
}
static void segv_on_small_stack(void) { on_thread(segv_on_small_stack_work, 1); }

static void* segv_later_work(void* nothing) { return sleep_ms(150), segv(), nothing; }
static void segv_later(void) { on_thread(segv_later_work, 0); }
static void* throw_work(void* nothing) { return fixture_throw("by a thread"), nothing; }
static void throw_in_thread(void) { on_thread(throw_work, 0); }
static void throw_here(void) { fixture_throw("by the hostile plugin"); }

/* Overwrites what the allocator keeps behind its blocks; nothing shows before they are used. */
static void corrupt_heap(void) {
  for (size_t size = 24; size < 4096; size += 16) {
    char* volatile block = malloc(size);
    memset(block, 0x5a, size + 64);
    free(malloc(size));
  }
}

static void hang(void) {
  for (;;) pause();
}
static void spin(void) {
  for (volatile int on = 1; on;) on = 1;
}
static void hang_deaf(void) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  hang();
}
static void exit_and_hang(void) {
  atexit(hang);
  exit(0);
}
static void hang_at_exit(void) { atexit(hang); }
static void crash_at_exit(void) {
  crashes_at_exit = 1;
  exit(0);
}
static void crash_when_unloaded(void) { crashes_at_exit = 1; }

static void end_thread(void) { pthread_exit(NULL); }

static jmp_buf gone;
static __attribute__((noinline)) int mark(void) {
  char volatile room[256];
  room[0] = 1;
  return setjmp(gone) + room[0];
}
static void jump(void) {
  if (mark() == 1) longjmp(gone, 1);
}

static void sleep_a_second(void) { sleep_ms(1000); }

const deed ending_deeds[] = {
    {"sleep", sleep_a_second},
    {"segv", segv},
    {"abort", abort},
    {"exit-3", exit_3},
    {"leave", leave},
    {"overflow", overflow_here},
    {"segv-in-thread", segv_in_thread},
    {"segv-on-small-stack", segv_on_small_stack},
    {"segv-later", segv_later},
    {"throw", throw_here},
    {"throw-in-thread", throw_in_thread},
    {"corrupt-heap", corrupt_heap},
    {"hang", hang},
    {"spin", spin},
    {"hang-deaf", hang_deaf},
    {"exit-and-hang", exit_and_hang},
    {"hang-at-exit", hang_at_exit},
    {"crash-at-exit", crash_at_exit},
    {"crash-when-unloaded", crash_when_unloaded},
    {"end-thread", end_thread},
    {"jump", jump},
    {NULL, NULL},
};
