/* What was found, as sentences. */
#pragma once

#include <stdint.h>

#include "fork_safe_lock.h"

/* Taken while locks of blocks and of the quarantine are held; none is taken under it. */
extern fork_safe_lock violations_lock;

/* Keeps a sentence and writes it to stderr; neither allocates. */
void report_violation(const char* format, ...) __attribute__((format(printf, 1, 2)));

/* How many there are by now. */
uint64_t violation_count(void);

/* Ends the process with a line on stderr, where nothing can be relied upon any more. */
_Noreturn void stop_process(const char* why);
