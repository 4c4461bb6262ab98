/* What the fixture plugin counts, so that tests can see leaks, double frees and missing calls. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Totals since the library was loaded. Balanced: each left number equals its right one. */
typedef struct fixture_counters {
  int64_t allocated, freed;        /* blocks of plugin_memory_allocate */
  int64_t bad_frees;               /* frees of what was not allocated here, or twice */
  int64_t inits, cleanups;         /* filesystems */
  int64_t files_opened, files_cleaned_up; /* readers, writers and regions */
  int64_t writers_closed;          /* successful or not */
  int64_t reads_at_once;           /* the most reads that ever ran in parallel */
} fixture_counters;

/* The live numbers; change them with the functions below only. */
extern fixture_counters fixture_ledger;

/* Adds to one number of the ledger. [any thread] */
void ledger_add(int64_t* number, int64_t amount);

/* malloc and free that keep count. A bad free is counted and otherwise ignored. [any thread] */
void* ledger_allocate(size_t size);
void ledger_free(void* block);

/* Copies a string into a block of ledger_allocate. */
char* ledger_string(const char* text);
