/* Around a fork one thread holds every lock: the child then finds them as the parent has them. */
#include <pthread.h>

#include "block_table.h"
#include "fork_safe_lock.h"
#include "quarantine.h"
#include "violations.h"

/* Handlers of others may allocate after ours took the locks, and before ours gave them back. */
static __thread int is_forking;

void lock(fork_safe_lock* lock) {
  if (!is_forking) pthread_mutex_lock(&lock->mutex);
}

void unlock(fork_safe_lock* lock) {
  if (!is_forking) pthread_mutex_unlock(&lock->mutex);
}

/* In the one order in which locks are taken while others are held. */
static void for_each_lock(int (*act)(pthread_mutex_t*)) {
  for (int i = 0; i < BLOCK_SHARDS; ++i) act(&host_blocks.shards[i].lock.mutex);
  for (int i = 0; i < BLOCK_SHARDS; ++i) act(&plugin_blocks.shards[i].lock.mutex);
  act(&quarantine_lock.mutex);
  act(&violations_lock.mutex);
}

static void before_fork(void) {
  for_each_lock(pthread_mutex_lock);
  is_forking = 1;
}

static void after_fork(void) {
  is_forking = 0;
  for_each_lock(pthread_mutex_unlock);
}

__attribute__((constructor)) static void watch_forks(void) {
  pthread_atfork(before_fork, after_fork, after_fork);
}
