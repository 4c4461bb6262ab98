#define _POSIX_C_SOURCE 200809L
#include "ledger.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../report.h"

static const char* const names[LEDGER_ENTRIES] = {
    "platforms", "platform_fns", "device_fns", "executors", "timer_fns", "devices",
    "streams",   "events",       "timers",     "blocks",    "host_blocks",
};

typedef struct block {
  struct block* next;
  ledger_entry entry;
  size_t size;
  void* memory;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t alive[LEDGER_ENTRIES], total[LEDGER_ENTRIES], bad_frees, in_use, peak_in_use;
static block* blocks;

void ledger_begin(ledger_entry entry) {
  pthread_mutex_lock(&lock);
  alive[entry] += 1;
  total[entry] += 1;
  pthread_mutex_unlock(&lock);
}

void ledger_end(ledger_entry entry) {
  pthread_mutex_lock(&lock);
  alive[entry] -= 1;
  pthread_mutex_unlock(&lock);
}

int64_t ledger_alive(ledger_entry entry) {
  pthread_mutex_lock(&lock);
  int64_t count = alive[entry];
  pthread_mutex_unlock(&lock);
  return count;
}

static void count_bytes(ledger_entry entry, int64_t change) {
  if (entry != LEDGER_BLOCKS) return;
  in_use += change;
  if (in_use > peak_in_use) peak_in_use = in_use;
}

void* ledger_allocate(ledger_entry entry, size_t size) {
  block* made = malloc(sizeof(block));
  void* memory = aligned_alloc(64, (size + 64) / 64 * 64);
  if (made == NULL || memory == NULL) abort();
  pthread_mutex_lock(&lock);
  *made = (block){.next = blocks, .entry = entry, .size = size, .memory = memory};
  blocks = made;
  count_bytes(entry, (int64_t)size);
  pthread_mutex_unlock(&lock);
  ledger_begin(entry);
  return memory;
}

static block* unlink_block(ledger_entry entry, const void* memory) {
  for (block** place = &blocks; *place != NULL; place = &(*place)->next) {
    block* found = *place;
    if (found->memory != memory || found->entry != entry) continue;
    *place = found->next;
    return found;
  }
  return NULL;
}

void ledger_free(ledger_entry entry, void* memory) {
  if (memory == NULL) return;
  pthread_mutex_lock(&lock);
  block* found = unlink_block(entry, memory);
  if (found == NULL) bad_frees += 1;
  else count_bytes(entry, -(int64_t)found->size);
  pthread_mutex_unlock(&lock);
  if (found == NULL) return;
  ledger_end(entry);
  free(found->memory);
  free(found);
}

void ledger_usage(int64_t* now, int64_t* peak) {
  pthread_mutex_lock(&lock);
  *now = in_use;
  *peak = peak_in_use;
  pthread_mutex_unlock(&lock);
}

int ledger_describe(char* text, size_t size) {
  int used = snprintf(text, size, "{\"variant\": \"%s\", \"pid\": %ld, \"bad_frees\": %" PRId64,
                      fixture_variant, (long)getpid(), bad_frees);
  for (int entry = 0; entry < LEDGER_ENTRIES; ++entry)
    used += snprintf(text + used, size - (size_t)used, ", \"%s\": [%" PRId64 ", %" PRId64 "]",
                     names[entry], alive[entry], total[entry]);
  return used + snprintf(text + used, size - (size_t)used, "}\n");
}
