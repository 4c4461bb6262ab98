#include "violations.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checking_allocator.h"

enum {
  KEPT = 64,      /* the latest; those before are counted only */
  LENGTH = 160,   /* of a sentence, with its NUL */
  SHOWN_MOST = 16 /* lines on stderr: a plugin that does it always would flood it */
};

fork_safe_lock violations_lock = FORK_SAFE_LOCK;

static char kept[KEPT][LENGTH];
static uint64_t count;

static void write_line(const char* text) {
  char line[LENGTH + 32];
  const int length = snprintf(line, sizeof line, "checking allocator: %s\n", text);
  /* Whoever closed stderr loses the line, nothing else. */
  const ssize_t written = write(STDERR_FILENO, line, (size_t)length);
  (void)written;
}

void report_violation(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  lock(&violations_lock);
  char* text = kept[count % KEPT];
  vsnprintf(text, LENGTH, format, arguments);
  ++count;
  if (count <= SHOWN_MOST) write_line(text);
  unlock(&violations_lock);
  va_end(arguments);
}

_Noreturn void stop_process(const char* why) {
  write_line(why);
  abort();
}

uint64_t violation_count(void) {
  lock(&violations_lock);
  const uint64_t now = count;
  unlock(&violations_lock);
  return now;
}

int mtf_heap_violation(uint64_t index, char* text, size_t size) {
  lock(&violations_lock);
  const int is_kept = index < count && index + KEPT >= count && size > 0;
  if (is_kept) {
    strncpy(text, kept[index % KEPT], size - 1);
    text[size - 1] = '\0';
  }
  unlock(&violations_lock);
  return is_kept;
}
