/* Counts what is registered to be called at each fork, of which the C library keeps no list that can be
 * read. To be preloaded, by processes that try plugins. pthread_atfork of glibc is a function in each
 * library that calls this one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>

typedef int register_function(void (*)(void), void (*)(void), void (*)(void), void*);

static atomic_uint count;

__attribute__((visibility("default"))) unsigned mtf_fork_handler_count(void) {
  return atomic_load(&count);
}

__attribute__((visibility("default"))) int __register_atfork(void (*prepare)(void),
                                                             void (*parent)(void),
                                                             void (*child)(void), void* library) {
  register_function* next;
  *(void**)&next = dlsym(RTLD_NEXT, "__register_atfork");
  atomic_fetch_add(&count, 1);
  return next(prepare, parent, child, library);
}
