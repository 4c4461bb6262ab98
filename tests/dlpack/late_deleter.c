/* Calls a deleter on a thread of its own and when the process exits. */
#include <pthread.h>
#include <stdlib.h>

typedef void (*Deleter)(void*);
static Deleter last;
static void* of_last;

static Deleter of(void* managed) { return *(Deleter*)((char*)managed + 16); }

static void* run(void* managed) {
  of(managed)(managed);
  return managed;
}

__attribute__((visibility("default"))) int delete_on_thread(void* managed) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, managed) != 0) return 1;
  return pthread_join(thread, NULL);
}

static void delete_last(void) { last(of_last); }

__attribute__((visibility("default"))) int delete_at_exit(void* managed) {
  last = of(managed);
  of_last = managed;
  return atexit(delete_last);
}
