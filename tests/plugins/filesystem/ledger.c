#define _POSIX_C_SOURCE 200809L
#include "ledger.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../report.h"

fixture_counters fixture_ledger;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Live blocks, in no order; each one precedes the memory that the host sees. */
typedef struct block {
  struct block* next;
  _Alignas(max_align_t) char memory[];
} block;

static block* live;

void ledger_add(int64_t* number, int64_t amount) {
  pthread_mutex_lock(&lock);
  *number += amount;
  pthread_mutex_unlock(&lock);
}

void* ledger_allocate(size_t size) {
  block* made = malloc(sizeof(block) + size);
  if (made == NULL) return NULL;
  pthread_mutex_lock(&lock);
  made->next = live;
  live = made;
  fixture_ledger.allocated += 1;
  pthread_mutex_unlock(&lock);
  return made->memory;
}

static block* unlink_block(const void* memory) {
  for (block** place = &live; *place != NULL; place = &(*place)->next) {
    block* found = *place;
    if (found->memory != memory) continue;
    *place = found->next;
    return found;
  }
  return NULL;
}

void ledger_free(void* memory) {
  if (memory == NULL) return;
  pthread_mutex_lock(&lock);
  block* found = unlink_block(memory);
  *(found != NULL ? &fixture_ledger.freed : &fixture_ledger.bad_frees) += 1;
  pthread_mutex_unlock(&lock);
  free(found);
}

char* ledger_string(const char* text) {
  char* copy = ledger_allocate(strlen(text) + 1);
  return copy == NULL ? NULL : strcpy(copy, text);
}

int ledger_describe(char* text, size_t size) {
  pthread_mutex_lock(&lock);
  fixture_counters now = fixture_ledger;
  pthread_mutex_unlock(&lock);
  return snprintf(text, size,
                  "{\"variant\": \"%s\", \"pid\": %ld, \"allocated\": %" PRId64 ", \"freed\": %" PRId64
                  ", \"bad_frees\": %" PRId64 ", \"inits\": %" PRId64 ", \"cleanups\": %" PRId64
                  ", \"files_opened\": %" PRId64 ", \"files_cleaned_up\": %" PRId64
                  ", \"writers_closed\": %" PRId64 ", \"reads_at_once\": %" PRId64 "}\n",
                  fixture_variant, (long)getpid(), now.allocated, now.freed, now.bad_frees,
                  now.inits, now.cleanups, now.files_opened, now.files_cleaned_up, now.writers_closed, now.reads_at_once);
}

/* For tests in the same process that know which copy of the library was loaded. */
__attribute__((visibility("default"))) void fixture_get_counters(fixture_counters* counters) {
  pthread_mutex_lock(&lock);
  *counters = fixture_ledger;
  pthread_mutex_unlock(&lock);
}
