/* Clocks, threads and libraries of env.h. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host_runtime.h"
#include "log_line.h"
#include "modular_tf/env.h"
#include "modular_tf/export.h"
#include "numa_affinity.h"

TF_CAPI_EXPORT const char* mtf_runtime_version(void) { return MODULAR_TF_VERSION; }

uint64_t TF_NowNanos(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t TF_NowMicros(void) { return TF_NowNanos() / 1000u; }

uint64_t TF_NowSeconds(void) { return TF_NowNanos() / 1000000000u; }

/* -- threads -- */

struct TF_Thread {
  pthread_t id;
  int numa_node;
  void (*work)(void*);
  void* argument;
  char name[16]; /* what the kernel keeps, NUL included */
};

void TF_DefaultThreadOptions(TF_ThreadOptions* options) {
  *options = (TF_ThreadOptions){.stack_size = 0, .guard_size = 0, .numa_node = -1};
}

static void* run(void* argument) {
  const TF_Thread* thread = argument;
  if (thread->name[0] != '\0') pthread_setname_np(pthread_self(), thread->name);
  mtf_stay_on_numa_node(thread->numa_node);
  thread->work(thread->argument);
  return NULL;
}

/* A size that the system does not take leaves its default in place. */
static void apply(const TF_ThreadOptions* options, pthread_attr_t* attributes) {
  pthread_attr_init(attributes);
  if (options->stack_size != 0) pthread_attr_setstacksize(attributes, options->stack_size);
  if (options->guard_size != 0) pthread_attr_setguardsize(attributes, options->guard_size);
}

static void require_started(int error, const char* name, const void* caller) {
  if (error == 0) return;
  char message[160];
  snprintf(message, sizeof(message), "cannot start thread '%s': %s", name, strerror(error));
  mtf_log_fatal(message, caller);
}

TF_Thread* TF_StartThread(const TF_ThreadOptions* options, const char* thread_name,
                          void (*work_func)(void*), void* param) {
  const char* name = thread_name == NULL ? "" : thread_name;
  const void* caller = __builtin_return_address(0);
  TF_Thread* thread = calloc(1, sizeof(*thread));
  if (thread == NULL) mtf_log_fatal("cannot start a thread: out of memory", caller);
  *thread = (TF_Thread){.numa_node = options->numa_node, .work = work_func, .argument = param};
  snprintf(thread->name, sizeof(thread->name), "%s", name);
  pthread_attr_t attributes;
  apply(options, &attributes);
  const int error = pthread_create(&thread->id, &attributes, run, thread);
  pthread_attr_destroy(&attributes);
  require_started(error, name, caller);
  return thread;
}

void TF_JoinThread(TF_Thread* thread) {
  pthread_join(thread->id, NULL);
  free(thread);
}

/* -- libraries that a plugin loads by itself. They stay mapped: pointers into them may exist -- */

static void* found(void* result, TF_Status* status) {
  TF_SetStatus(status, result == NULL ? TF_NOT_FOUND : TF_OK, result == NULL ? dlerror() : NULL);
  return result;
}

void* TF_LoadSharedLibrary(const char* library_filename, TF_Status* status) {
  return found(dlopen(library_filename, RTLD_NOW | RTLD_LOCAL), status);
}

void* TF_GetSymbolFromLibrary(void* handle, const char* symbol_name, TF_Status* status) {
  if (handle == NULL) {
    TF_SetStatus(status, TF_INVALID_ARGUMENT, "library handle is NULL");
    return NULL;
  }
  return found(dlsym(handle, symbol_name), status);
}
