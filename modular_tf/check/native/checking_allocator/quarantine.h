/* Freed blocks that are kept for a while, so that a second free, and a late write, can be told. */
#pragma once

#include "block_table.h"
#include "fork_safe_lock.h"

/* Locks of violations are taken while it is held. */
extern fork_safe_lock quarantine_lock;

/* Takes a block that `table` has marked as freed. The oldest ones go back to the C library. */
void quarantine_add(block_table* table, const block* freed);

/* Looks at all that is kept. */
void quarantine_inspect(void);
