#include "log_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "modular_tf/export.h"
#include "modular_tf/logging.h"

static const int64_t nanoseconds_per_second = 1000000000;

static mtf_log_sink current_sink; /* atomic; NULL: stderr */

/* "2026-01-31 23:59:59.000001: W plugin] source.cc:42] text", the shape of TensorFlow's lines. */
TF_CAPI_EXPORT void mtf_write_log_line(const mtf_plugin_line* line) {
  const time_t seconds = (time_t)(line->time_ns / nanoseconds_per_second);
  const long microseconds = (long)(line->time_ns % nanoseconds_per_second / 1000);
  const char letter = line->level < 0 ? 'V' : "IWEF"[line->level & 3];
  struct tm local;
  char when[32];
  localtime_r(&seconds, &local);
  strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &local);
  /* One call each, so that lines of several threads do not mix. */
  if (line->file == NULL) {
    fprintf(stderr, "%s.%06ld: %c plugin] %s\n", when, microseconds, letter, line->text);
  } else {
    fprintf(stderr, "%s.%06ld: %c plugin] %s:%d] %s\n", when, microseconds, letter, line->file,
            (int)line->line, line->text);
  }
}

static void deliver(const mtf_plugin_line* line) {
  mtf_log_sink sink = __atomic_load_n(&current_sink, __ATOMIC_ACQUIRE);
  if (sink == NULL || sink(line) == 0) mtf_write_log_line(line);
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return (int64_t)time.tv_sec * nanoseconds_per_second + time.tv_nsec;
}

static size_t length_without_newlines(const char* text) {
  size_t length = strlen(text);
  while (length > 0 && text[length - 1] == '\n') --length;
  return length;
}

void mtf_log_line(const mtf_plugin_line* line) {
  char* trimmed = strndup(line->text, length_without_newlines(line->text));
  mtf_plugin_line stamped = *line;
  stamped.time_ns = now();
  if (trimmed != NULL) stamped.text = trimmed;
  deliver(&stamped);
  free(trimmed);
}

void mtf_log_fatal(const char* text, const void* caller) {
  mtf_log_line(&(mtf_plugin_line){.level = TF_FATAL, .text = text, .caller = caller});
  abort();
}

TF_CAPI_EXPORT void mtf_set_log_sink(mtf_log_sink sink) {
  __atomic_store_n(&current_sink, sink, __ATOMIC_RELEASE);
}
