#include "quarantine.h"

#include "c_library.h"
#include "guards.h"

enum { MOST_BLOCKS = 4096 };
static const size_t most_bytes = (size_t)8 << 20;

typedef struct kept_block {
  block_table* table;
  block freed;
} kept_block;

fork_safe_lock quarantine_lock = FORK_SAFE_LOCK;

static kept_block ring[MOST_BLOCKS];
static size_t oldest;
static size_t count;
static size_t bytes;

static bool is_too_much(void) { return count == MOST_BLOCKS || (bytes > most_bytes && count > 0); }

static kept_block take_oldest(void) {
  const kept_block taken = ring[oldest];
  oldest = (oldest + 1) % MOST_BLOCKS;
  --count;
  bytes -= taken.freed.size;
  return taken;
}

/* Its entry goes first: the C library may give the same memory to another thread at once. */
static void give_back(const kept_block* taken) {
  check_poison(&taken->freed);
  block_table_remove(taken->table, taken->freed.start);
  __libc_free(taken->freed.base);
}

void quarantine_add(block_table* table, const block* freed) {
  const kept_block added = {table, *freed};
  lock(&quarantine_lock);
  bytes += freed->size;
  while (is_too_much()) {
    const kept_block taken = take_oldest();
    unlock(&quarantine_lock);
    give_back(&taken);
    lock(&quarantine_lock);
  }
  ring[(oldest + count) % MOST_BLOCKS] = added;
  ++count;
  unlock(&quarantine_lock);
}

void quarantine_inspect(void) {
  lock(&quarantine_lock);
  for (size_t i = 0; i < count; ++i) check_poison(&ring[(oldest + i) % MOST_BLOCKS].freed);
  unlock(&quarantine_lock);
}
