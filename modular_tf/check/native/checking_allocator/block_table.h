/* Which blocks there are, by address. What is known of a block is kept away from it, where an
 * overrun cannot reach. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fork_safe_lock.h"

enum { BLOCK_SHARDS = 32 };

typedef struct block {
  unsigned char* start; /* what the caller has; NULL in an empty place */
  void* base;           /* what the C library gave */
  size_t size;          /* what was asked for */
  bool is_freed;        /* and in quarantine */
} block;

typedef struct block_shard {
  fork_safe_lock lock;
  block* places; /* open addressing, linear probing; NULL at first */
  size_t capacity;
  size_t count;
} block_shard;

typedef struct block_table {
  block_shard shards[BLOCK_SHARDS];
} block_table;

/* Those of the plugin are few, so that all of them can be looked at after each call. */
extern block_table host_blocks;
extern block_table plugin_blocks;

void block_table_add(block_table* table, const block* added);

/* Copies the block that begins at `start`; false where there is none. */
bool block_table_find(block_table* table, const void* start, block* found);

/* Marks a live block as freed. Copies it as it was before, also where it had been freed already;
 * false where there is none. */
bool block_table_mark_freed(block_table* table, const void* start, block* found);

void block_table_remove(block_table* table, const void* start);

/* Calls `visit` on each block; it must not use the table. */
void block_table_visit(block_table* table, void (*visit)(const block*));
