/* Copies of strings that another thread may change, such as those of a plugin: the length is
 * measured once, that many bytes are copied, and the NUL at the end is ours. (strdup copies the NUL
 * that it saw, which may be gone; what is measured a second time may have grown.) */
#pragma once

#include <stddef.h>
#include <stdint.h>
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

/* What TensorFlow takes for the scheme of a URI (filesystem-abi §5). */

/* The length of the scheme before "://": a letter, then one or more letters, digits or dots. 0: there is
 * none. `uri` ends after `size` bytes or at a NUL. */
static inline size_t mtf_scheme_length(const char* uri, size_t size) {
  size_t length = 0;
  for (; length < size; ++length) {
    const char c = uri[length];
    const int is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const int may_follow = length > 0 && ((c >= '0' && c <= '9') || c == '.');
    if (!is_letter && !may_follow) break;
  }
  const int is_scheme = length > 1 && size - length >= 3 && strncmp(uri + length, "://", 3) == 0;
  return is_scheme ? length : 0;
}
