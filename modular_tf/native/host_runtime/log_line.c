/* Log lines of plugins: TF_Log, TF_VLog, TF_DVLog, and where they go. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host_runtime.h"
#include "modular_tf/export.h"
#include "modular_tf/logging.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int min_log_level;
static int max_vlog_level;

static int number_in(const char* variable) {
  const char* text = getenv(variable);
  return text == NULL ? 0 : (int)strtol(text, NULL, 10);
}

static void read_environment(void) {
  min_log_level = number_in("TF_CPP_MIN_LOG_LEVEL");
  max_vlog_level = number_in("TF_CPP_MAX_VLOG_LEVEL");
}

int mtf_min_log_level(void) {
  pthread_once(&once, read_environment);
  return min_log_level;
}

int mtf_max_vlog_level(void) {
  pthread_once(&once, read_environment);
  return max_vlog_level;
}

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

/* Whose code a line is of: that which called the function this stands in. */
#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))

static void log_formatted(int level, const void* caller, const char* format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

static void log_formatted(int level, const void* caller, const char* format, va_list arguments) {
  char* text = NULL;
  const int length = vasprintf(&text, format, arguments);
  /* The words without the values, rather than nothing. */
  const char* shown = length < 0 ? format : text;
  mtf_log_line(&(mtf_plugin_line){.level = level, .text = shown, .caller = caller});
  if (length >= 0) free(text);
}

/* A severity that no list knows is an error: it is worth a look, not the process. */
static int known_severity(TF_LogLevel level) {
  return (int)level >= TF_INFO && (int)level <= TF_FATAL ? (int)level : TF_ERROR;
}

void TF_Log(TF_LogLevel level, const char* format, ...) {
  const int severity = known_severity(level);
  if (severity < mtf_min_log_level() && severity != TF_FATAL) return;
  va_list arguments;
  va_start(arguments, format);
  log_formatted(severity, CALLER, format, arguments);
  va_end(arguments);
  if (severity == TF_FATAL) abort();
}

void TF_VLog(int level, const char* format, ...) {
  if (level > mtf_max_vlog_level()) return;
  va_list arguments;
  va_start(arguments, format);
  log_formatted(-1 - level, CALLER, format, arguments);
  va_end(arguments);
}

void TF_DVLog(int level, const char* format, ...) {
  if (level > mtf_max_vlog_level()) return;
  va_list arguments;
  va_start(arguments, format);
  log_formatted(-1 - level, CALLER, format, arguments);
  va_end(arguments);
}
