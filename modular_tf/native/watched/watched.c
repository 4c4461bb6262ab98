/* What processes that run plugins apart from the application have of the C library by LD_PRELOAD.
 *
 * pthread_create gives each thread a stack of its own for its signal handlers, as sigaltstack has it: a thread
 * whose stack has run out can still report where. Whatever starts a thread by pthread_create is served, the C++
 * library's threads among them; threads of thrd_create or clone are not, nor is one that replaces its signal
 * stack.
 *
 * __register_atfork counts what is registered to be called at each fork, of which the C library keeps no list
 * that can be read. pthread_atfork of glibc is a function in each library that calls this one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef int create_function(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

enum { STACK_SIZE = 64 << 10 }; /* four times what the handlers of process_end.cc need */

struct start {
  void* (*routine)(void*);
  void* argument;
};

static void unmap(void* stack) {
  const stack_t none = {.ss_flags = SS_DISABLE};
  sigaltstack(&none, NULL);
  munmap(stack, STACK_SIZE);
}

static void* run(void* given) {
  const struct start start = *(struct start*)given;
  free(given);
  void* stack =
      mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return start.routine(start.argument);
  const stack_t own = {.ss_sp = stack, .ss_size = STACK_SIZE};
  sigaltstack(&own, NULL);
  void* result;
  pthread_cleanup_push(unmap, stack); /* also where the routine ends the thread */
  result = start.routine(start.argument);
  pthread_cleanup_pop(1);
  return result;
}

static create_function* next_create(void) {
  static _Atomic(create_function*) next;
  create_function* found = atomic_load(&next);
  if (found == NULL) {
    *(void**)&found = dlsym(RTLD_NEXT, "pthread_create");
    atomic_store(&next, found);
  }
  return found;
}

__attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                          const pthread_attr_t* attributes,
                                                          void* (*routine)(void*),
                                                          void* argument) {
  create_function* create = next_create();
  struct start* start = malloc(sizeof *start);
  if (start == NULL) return create(thread, attributes, routine, argument);
  *start = (struct start){routine, argument};
  const int error = create(thread, attributes, run, start);
  if (error != 0) free(start);
  return error;
}

typedef int register_function(void (*)(void), void (*)(void), void (*)(void), void*);

static atomic_uint fork_handlers;

__attribute__((visibility("default"))) unsigned mtf_fork_handler_count(void) {
  return atomic_load(&fork_handlers);
}

__attribute__((visibility("default"))) int __register_atfork(void (*prepare)(void),
                                                             void (*parent)(void),
                                                             void (*child)(void), void* library) {
  register_function* next;
  *(void**)&next = dlsym(RTLD_NEXT, "__register_atfork");
  atomic_fetch_add(&fork_handlers, 1);
  return next(prepare, parent, child, library);
}
