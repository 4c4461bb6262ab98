#include "log_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "host_runtime.h"
#include "modular_tf/export.h"

static mtf_log_sink current_sink; /* atomic; NULL: stderr */

/* "2026-01-31 23:59:59.000001: W plugin] text", the shape of TensorFlow's own lines. */
static void write_to_stderr(int level, const char* message) {
  struct timeval now;
  struct tm local;
  char when[32];
  gettimeofday(&now, NULL);
  localtime_r(&now.tv_sec, &local);
  strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &local);
  /* One call, so that lines of several threads do not mix. */
  fprintf(stderr, "%s.%06ld: %c plugin] %s\n", when, (long)now.tv_usec,
          level < 0 ? 'V' : "IWEF"[level & 3], message);
}

static void deliver(int level, const char* message) {
  mtf_log_sink sink = __atomic_load_n(&current_sink, __ATOMIC_ACQUIRE);
  (sink == NULL ? write_to_stderr : sink)(level, message);
}

static size_t length_without_newlines(const char* message) {
  size_t length = strlen(message);
  while (length > 0 && message[length - 1] == '\n') --length;
  return length;
}

void mtf_log_line(int level, const char* message) {
  char* trimmed = strndup(message, length_without_newlines(message));
  deliver(level, trimmed == NULL ? message : trimmed);
  free(trimmed);
}

void mtf_log_fatal(const char* message) {
  mtf_log_line(3, message);
  abort();
}

TF_CAPI_EXPORT void mtf_set_log_sink(mtf_log_sink sink) {
  __atomic_store_n(&current_sink, sink, __ATOMIC_RELEASE);
}
