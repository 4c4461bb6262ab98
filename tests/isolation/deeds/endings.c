/* Ways in which the process ends, or its heap does, or its thread. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "deed.h"

void fixture_throw(const char* what);

static void* volatile kept;
static int crashes_at_exit;

__attribute__((destructor)) static void end_library(void) {
  if (crashes_at_exit) *(volatile int*)8 = 1;
}

static void segv(void) { *(volatile int*)8 = 1; }
static void call_null(void) { ((void (*)(void))kept)(); }
static void illegal(void) { __builtin_trap(); }
static void divide(void) { raise(SIGFPE); }
static void exit_0(void) { exit(0); }
static void exit_3(void) { exit(3); }
static void leave(void) { _exit(4); }
static void leave_quickly(void) { quick_exit(5); }

static void bus(void) {
  int file = memfd_create("short", 0);
  if (ftruncate(file, 4096) != 0) return;
  volatile char* page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
  if (ftruncate(file, 0) == 0) kept = (void*)(size_t)page[0];
}

static __attribute__((noinline)) int overflow(volatile char* above) {
  volatile char here[4096];
  if (*above == '!') return 0;
  here[0] = *above;
  return overflow(here) + here[0];
}
static void overflow_here(void) { overflow("x"); }
static void* overflow_work(void* nothing) { return overflow("x"), nothing; }
static void overflow_in_thread(void) { on_thread(overflow_work, 1); }

static void* segv_work(void* nothing) { return segv(), nothing; }
static void segv_in_thread(void) { on_thread(segv_work, 1); }

static void* segv_later_work(void* nothing) { return sleep_ms(150), segv(), nothing; }
static void segv_later(void) { on_thread(segv_later_work, 0); }
static void* abort_later_work(void* nothing) { return sleep_ms(150), abort(), nothing; }
static void abort_later(void) { on_thread(abort_later_work, 0); }
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
static void free_twice(void) {
  void* volatile block = malloc(100000);
  void* volatile again = block;
  free(block);
  free(again);
}
static void free_unallocated(void) {
  char* block = malloc(64);
  kept = block + 8;
  free(kept);
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
static pthread_mutex_t taken_for_ever = PTHREAD_MUTEX_INITIALIZER;
static void deadlock(void) {
  pthread_mutex_lock(&taken_for_ever);
  pthread_mutex_lock(&taken_for_ever);
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
static void cancel_thread(void) {
  pthread_cancel(pthread_self());
  pthread_testcancel();
}

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
    {"call-null", call_null},
    {"illegal", illegal},
    {"fpe", divide},
    {"bus", bus},
    {"abort", abort},
    {"exit-0", exit_0},
    {"exit-3", exit_3},
    {"leave", leave},
    {"leave-quickly", leave_quickly},
    {"overflow", overflow_here},
    {"overflow-in-thread", overflow_in_thread},
    {"segv-in-thread", segv_in_thread},
    {"segv-later", segv_later},
    {"abort-later", abort_later},
    {"throw", throw_here},
    {"throw-in-thread", throw_in_thread},
    {"corrupt-heap", corrupt_heap},
    {"free-twice", free_twice},
    {"free-unallocated", free_unallocated},
    {"hang", hang},
    {"spin", spin},
    {"hang-deaf", hang_deaf},
    {"deadlock", deadlock},
    {"exit-and-hang", exit_and_hang},
    {"hang-at-exit", hang_at_exit},
    {"crash-at-exit", crash_at_exit},
    {"crash-when-unloaded", crash_when_unloaded},
    {"end-thread", end_thread},
    {"cancel-thread", cancel_thread},
    {"jump", jump},
    {NULL, NULL},
};
