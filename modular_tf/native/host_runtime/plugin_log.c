/* TF_Log, TF_VLog and TF_DVLog. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "log_levels.h"
#include "log_line.h"
#include "modular_tf/logging.h"

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
