/* Calls a deleter, or asks for a work stream, on a thread of its own and when the process exits. */
#define _POSIX_C_SOURCE 200809L /* for dprintf */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef int (*WorkStream)(int32_t, int32_t, void**);
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

static void* ask(void* table) {
  void* stream = NULL;
  dprintf(1, "%d", ((WorkStream*)table)[6](12, 0, &stream));
  return NULL;
}

__attribute__((visibility("default"))) int ask_on_thread(void* table) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, ask, table) != 0) return 1;
  return pthread_join(thread, NULL);
}

static void ask_last(void) { ask(of_last); }

__attribute__((visibility("default"))) int ask_at_exit(void* table) {
  of_last = table;
  return atexit(ask_last);
}
