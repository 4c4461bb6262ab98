#define _GNU_SOURCE
#include "later_deeds.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void (*when_unloaded)(void) = NULL;

static int has_come(void) {
  const char* moment = getenv("MISDEED_MOMENT");
  return moment != NULL && access(moment, F_OK) == 0;
}

static void crash(void) { *(volatile int*)8 = 1; }
static void give_up(void) { abort(); }
static void leave(void) { exit(0); }
static void cancel_this_thread(int number) {
  (void)number;
  pthread_cancel(pthread_self());
}

/* The thread that called init may have ended, so the main one is made to cancel itself. */
static void cancel_main_thread(void) {
  struct sigaction action = {.sa_handler = cancel_this_thread};
  sigaction(SIGRTMAX, &action, NULL);
  syscall(SYS_tgkill, getpid(), getpid(), SIGRTMAX);
}
static void hang(void) {
  for (;;) pause();
}

/* A mapping of this process. */
struct mapping {
  uintptr_t begin, end;
};

enum { kMostMappings = 4096, kMostOfATable = 1 << 20 };
static struct mapping code[kMostMappings], tables[kMostMappings];

/* Fills `code` with the code of other libraries, and `tables` with what may be tables. */
static void find_mappings(size_t* code_count, size_t* table_count) {
  char line[4400], rights[8];
  unsigned long begin, end, inode;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    if (sscanf(line, "%lx-%lx %7s %*s %*s %lu", &begin, &end, rights, &inode) != 4) continue;
    const struct mapping found = {begin, end};
    const uintptr_t own = (uintptr_t)&find_mappings;
    if (strcmp(rights, "r-xp") == 0 && inode != 0 && (own < begin || own >= end)) {
      if (*code_count < kMostMappings) code[(*code_count)++] = found;
    } else if (strcmp(rights, "r--p") == 0 && strpbrk(line, "/[") == NULL) {
      if (end - begin <= kMostOfATable && *table_count < kMostMappings) {
        tables[(*table_count)++] = found;
      }
    }
  }
  if (maps != NULL) fclose(maps);
}

static void overwrite_tables(void) {
  static const uintptr_t nowhere = 8;
  size_t code_count = 0, table_count = 0;
  const int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  find_mappings(&code_count, &table_count);
  for (size_t i = 0; i < table_count; ++i) {
    for (uintptr_t at = tables[i].begin; at < tables[i].end; at += sizeof at) {
      const uintptr_t value = *(const uintptr_t*)at;
      for (size_t j = 0; j < code_count; ++j) {
        if (value < code[j].begin || value >= code[j].end) continue;
        if (pwrite(memory, &nowhere, sizeof nowhere, (off_t)at) < 0) {
          /* A kernel may forbid that. */
          mprotect((void*)tables[i].begin, tables[i].end - tables[i].begin, PROT_READ | PROT_WRITE);
          *(uintptr_t*)at = nowhere;
        }
      }
    }
  }
  close(memory);
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
  if (pthread_create(&thread, NULL, wait_and_do, &kept) == 0) pthread_detach(thread);
}

void crash_later(void) { in_a_thread(crash); }
void abort_later(void) { in_a_thread(give_up); }
void exit_later(void) { in_a_thread(leave); }
void cancel_main_thread_later(void) { in_a_thread(cancel_main_thread); }
void overwrite_tables_later(void) { in_a_thread(overwrite_tables); }

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
