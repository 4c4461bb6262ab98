/* What the device fixture counts, so that tests can see leaks, double frees and missing calls. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Each of these is counted up when it begins and down when it ends: 0 in the end is balance. */
typedef enum ledger_entry {
  LEDGER_PLATFORMS,
  LEDGER_PLATFORM_FNS,
  LEDGER_DEVICE_FNS,
  LEDGER_EXECUTORS,
  LEDGER_TIMER_FNS,
  LEDGER_DEVICES,
  LEDGER_STREAMS,
  LEDGER_EVENTS,
  LEDGER_TIMERS,
  LEDGER_BLOCKS,      /* device memory */
  LEDGER_HOST_BLOCKS, /* host memory, unified memory included */
  LEDGER_ENTRIES
} ledger_entry;

/* How many are alive now, and how many there ever were. [any thread] */
void ledger_begin(ledger_entry entry);
void ledger_end(ledger_entry entry);
int64_t ledger_alive(ledger_entry entry);

/* malloc and free of host memory under an entry. Freeing what is not alive is counted as a
 * "bad_frees" and otherwise ignored; NULL may always be freed. */
void* ledger_allocate(ledger_entry entry, size_t size);
void ledger_free(ledger_entry entry, void* memory);

/* Bytes of device memory that are allocated now, and that ever were at once. */
void ledger_usage(int64_t* now, int64_t* peak);
