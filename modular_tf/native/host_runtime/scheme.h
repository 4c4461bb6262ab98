/* What TensorFlow takes for the scheme of a URI (filesystem-abi §5). */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

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
