/* A lock that no fork leaves locked. Statically initialised by FORK_SAFE_LOCK; `fork_safety.c` has
 * the list of all. */
#pragma once

#include <pthread.h>

typedef struct fork_safe_lock {
  pthread_mutex_t mutex;
} fork_safe_lock;

#define FORK_SAFE_LOCK {PTHREAD_MUTEX_INITIALIZER}

/* Nothing in the thread that is forking, which holds them all. */
void lock(fork_safe_lock* lock);
void unlock(fork_safe_lock* lock);
