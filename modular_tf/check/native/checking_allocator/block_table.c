#include "block_table.h"

#include <sys/mman.h>

#include "violations.h"

block_table host_blocks = {{[0 ... BLOCK_SHARDS - 1] = {.lock = FORK_SAFE_LOCK}}};
block_table plugin_blocks = {{[0 ... BLOCK_SHARDS - 1] = {.lock = FORK_SAFE_LOCK}}};

enum { FIRST_CAPACITY = 128 };

static uint64_t hash_of(const void* start) {
  return ((uintptr_t)start >> 4) * UINT64_C(0x9e3779b97f4a7c15);
}

/* The upper bits choose the shard, lower ones the place: they must not depend on each other. */
static block_shard* shard_of(block_table* table, const void* start) {
  return &table->shards[hash_of(start) >> 59];
}

_Static_assert(BLOCK_SHARDS == 1 << 5, "the upper five bits of the hash choose the shard");

static size_t home_of(const block_shard* shard, const void* start) {
  return (size_t)(hash_of(start) >> 16) & (shard->capacity - 1);
}

static size_t next_place(const block_shard* shard, size_t place) {
  return (place + 1) & (shard->capacity - 1);
}

/* The place of a block, or the empty one where it would stand. */
static block* place_of(const block_shard* shard, const void* start) {
  size_t place = home_of(shard, start);
  while (shard->places[place].start != NULL && shard->places[place].start != start) {
    place = next_place(shard, place);
  }
  return &shard->places[place];
}

/* Its memory comes from the system: the allocator cannot serve itself. */
static void grow(block_shard* shard) {
  block* old = shard->places;
  const size_t old_capacity = shard->capacity;
  const size_t capacity = old_capacity == 0 ? FIRST_CAPACITY : 2 * old_capacity;
  void* fresh = mmap(NULL, capacity * sizeof(block), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) stop_process("no memory to keep track of heap blocks");
  shard->places = fresh;
  shard->capacity = capacity;
  for (size_t i = 0; i < old_capacity; ++i) {
    if (old[i].start != NULL) *place_of(shard, old[i].start) = old[i];
  }
  if (old != NULL) munmap(old, old_capacity * sizeof(block));
}

void block_table_add(block_table* table, const block* added) {
  block_shard* shard = shard_of(table, added->start);
  lock(&shard->lock);
  if (4 * (shard->count + 1) > 3 * shard->capacity) grow(shard);
  *place_of(shard, added->start) = *added;
  ++shard->count;
  unlock(&shard->lock);
}

/* With the lock held; NULL where there is none. */
static block* find_locked(block_shard* shard, const void* start) {
  if (shard->capacity == 0) return NULL;
  block* place = place_of(shard, start);
  return place->start == NULL ? NULL : place;
}

bool block_table_find(block_table* table, const void* start, block* found) {
  block_shard* shard = shard_of(table, start);
  lock(&shard->lock);
  const block* place = find_locked(shard, start);
  if (place != NULL) *found = *place;
  unlock(&shard->lock);
  return place != NULL;
}

bool block_table_mark_freed(block_table* table, const void* start, block* found) {
  block_shard* shard = shard_of(table, start);
  lock(&shard->lock);
  block* place = find_locked(shard, start);
  if (place != NULL) {
    *found = *place;
    place->is_freed = true;
  }
  unlock(&shard->lock);
  return place != NULL;
}

/* Moves later blocks of the same run forward, so that no search ends at the gap too early. */
static void close_gap(block_shard* shard, size_t gap) {
  for (size_t place = next_place(shard, gap); shard->places[place].start != NULL;
       place = next_place(shard, place)) {
    const size_t home = home_of(shard, shard->places[place].start);
    const size_t mask = shard->capacity - 1;
    if (((place - home) & mask) >= ((place - gap) & mask)) {
      shard->places[gap] = shard->places[place];
      gap = place;
    }
  }
  shard->places[gap].start = NULL;
}

void block_table_remove(block_table* table, const void* start) {
  block_shard* shard = shard_of(table, start);
  lock(&shard->lock);
  const block* place = find_locked(shard, start);
  if (place != NULL) {
    close_gap(shard, (size_t)(place - shard->places));
    --shard->count;
  }
  unlock(&shard->lock);
}

void block_table_visit(block_table* table, void (*visit)(const block*)) {
  for (int i = 0; i < BLOCK_SHARDS; ++i) {
    block_shard* shard = &table->shards[i];
    lock(&shard->lock);
    for (size_t place = 0; place < shard->capacity; ++place) {
      if (shard->places[place].start != NULL) visit(&shard->places[place]);
    }
    unlock(&shard->lock);
  }
}
