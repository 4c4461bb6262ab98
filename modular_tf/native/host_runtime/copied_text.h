/* Copies of strings that another thread may change, such as those of a plugin: the length is
 * measured once, that many bytes are copied, and the NUL at the end is ours. (strdup copies the NUL
 * that it saw, which may be gone; what is measured a second time may have grown.) */
#pragma once

#include <stdlib.h>
#include <string.h>

/* What is longer has no end, or is no text. */
enum { MTF_LONGEST_TEXT = 16 << 20 };

/* The length of `text`, at most MTF_LONGEST_TEXT. */
static inline size_t mtf_text_length(const char* text) { return strnlen(text, MTF_LONGEST_TEXT); }

/* Copies `length` bytes and a NUL to `target`. Returns what follows them. */
static inline char* mtf_put_text(char* target, const char* text, size_t length) {
  memcpy(target, text, length);
  target[length] = '\0';
  return target + length + 1;
}

/* A copy that the caller frees, cut off at MTF_LONGEST_TEXT; NULL when memory is out. */
static inline char* mtf_copied_text(const char* text) {
  const size_t length = mtf_text_length(text);
  char* copy = (char*)malloc(length + 1);
  if (copy != NULL) mtf_put_text(copy, text, length);
  return copy;
}
