/* A filesystem that logs: while it is loaded, in an operation, on threads of its own, at the end.
 *
 * What `path_exists` does is written in the path, SCHEME://host/WORD/NUMBER:
 *   log/LEVEL      one line of that TF_LogLevel, with a control character and a byte that is no UTF-8
 *   vlog/LEVEL     one VLOG line
 *   stream/LEVEL   one line by the stream of LOG(...) in plugins of TensorFlow 2.16
 *   burst/N        N lines, each with its number, then a warning
 *   thread/N       N lines on a thread of the plugin's own, which it waits for
 *   after/N        a line on a thread of its own, N milliseconds later, which it does not wait for
 *   fatal/0        a fatal line
 *   exit/0         a line, then exit(0)
 * and that it exists is what it says in the end. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "modular_tf/logging.h"
#include "../plugins/filesystem/plan.h"

const char fixture_variant[] = "talking"; /* for the ledger that it is linked with */

static void (*well_behaved_cleanup)(TF_Filesystem*);

__attribute__((constructor)) static void while_mapped(void) { TF_Log(TF_INFO, "mapped"); }

__attribute__((destructor)) static void while_unmapped(void) { TF_Log(TF_INFO, "unmapped"); }

static void sleep_milliseconds(long count) {
  const struct timespec time = {count / 1000, count % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static void* log_lines(void* count) {
  for (long i = 0; i < (long)count; ++i) TF_Log(TF_INFO, "line %ld of a thread", i);
  return NULL;
}

static void* log_later(void* milliseconds) {
  sleep_milliseconds((long)milliseconds);
  TF_Log(TF_WARNING, "late");
  return NULL;
}

static void on_a_thread(void* (*work)(void*), long argument, bool joined) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, (void*)argument) != 0) abort();
  if (joined) {
    pthread_join(thread, NULL);
  } else {
    pthread_detach(thread);
  }
}

static void burst(long count) {
  for (long i = 0; i < count; ++i) TF_Log(TF_INFO, "line %ld of a burst", i);
  TF_Log(TF_WARNING, "the burst is over");
}

void make_stream(void* room, const char* file, int line, int severity)
    __asm__("_ZN3tsl8internal10LogMessageC1EPKcii");
void destroy_stream(void* stream) __asm__("_ZN3tsl8internal10LogMessageD1Ev");

static void log_by_stream(int severity) {
  _Alignas(16) char stream[1024]; /* a std::ostringstream and three fields */
  make_stream(stream, "stream.cc", 1, severity);
  destroy_stream(stream);
}

static void obey(const char* word, long number) {
  if (strcmp(word, "log") == 0) TF_Log((TF_LogLevel)number, "said\x1b \xff %ld\n", number);
  if (strcmp(word, "vlog") == 0) TF_VLog((int)number, "in detail");
  if (strcmp(word, "stream") == 0) log_by_stream((int)number);
  if (strcmp(word, "burst") == 0) burst(number);
  if (strcmp(word, "thread") == 0) on_a_thread(log_lines, number, true);
  if (strcmp(word, "after") == 0) on_a_thread(log_later, number, false);
  if (strcmp(word, "fatal") == 0) TF_Log(TF_FATAL, "the end");
  if (strcmp(word, "exit") == 0) {
    TF_Log(TF_INFO, "leaving");
    exit(0);
  }
}

static void path_exists(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem;
  const char* number = strrchr(path, '/');
  const char* word = number;
  while (word > path && word[-1] != '/') --word;
  char copy[32] = "";
  strncat(copy, word, (size_t)(number - word));
  obey(copy, atol(number + 1));
  TF_SetStatus(status, TF_OK, "");
}

static void cleanup(TF_Filesystem* filesystem) {
  TF_Log(TF_INFO, "cleaned up");
  well_behaved_cleanup(filesystem);
}

void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  TF_Log(TF_INFO, "initialised");
  register_fixture(info, "good", FIXTURE_SCHEME);
  TF_FilesystemOps* table = info->ops[0].filesystem_ops;
  well_behaved_cleanup = table->cleanup;
  table->path_exists = path_exists;
  table->cleanup = cleanup;
}
