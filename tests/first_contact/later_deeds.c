#define _GNU_SOURCE
#include "later_deeds.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_t caller;
static void (*when_unloaded)(void) = NULL;

static int has_come(void) {
  const char* moment = getenv("MISDEED_MOMENT");
  return moment != NULL && access(moment, F_OK) == 0;
}

static void crash(void) { *(volatile int*)8 = 1; }
static void give_up(void) { abort(); }
static void leave(void) { exit(0); }
static void cancel_main_thread(void) { pthread_cancel(caller); }
static void hang(void) {
  for (;;) pause();
}

static void* wait_and_do(void* deed) {
  const struct timespec a_while = {0, 5000000};
  while (!has_come()) nanosleep(&a_while, NULL);
  (*(void (**)(void))deed)();
  return NULL;
}

static void in_a_thread(void (*deed)(void)) {
  static void (*kept)(void);
  pthread_t thread;
  kept = deed;
  caller = pthread_self();
  if (pthread_create(&thread, NULL, wait_and_do, &kept) == 0) pthread_detach(thread);
}

void crash_later(void) { in_a_thread(crash); }
void abort_later(void) { in_a_thread(give_up); }
void exit_later(void) { in_a_thread(leave); }
void cancel_main_thread_later(void) { in_a_thread(cancel_main_thread); }

static void crash_now(void) {
  if (has_come()) crash();
}
static void hang_now(void) {
  if (has_come()) hang();
}

void crash_at_exit(void) { atexit(crash_now); }
void hang_at_exit(void) { atexit(hang_now); }
void crash_when_unloaded(void) { when_unloaded = crash_now; }
void hang_when_unloaded(void) { when_unloaded = hang_now; }

__attribute__((destructor)) static void destructor(void) {
  if (when_unloaded != NULL) when_unloaded();
}
