/* One level of a glob pattern, the part between two slashes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether the first `size` bytes hold a character that is special in a pattern. */
bool glob_has_magic(const char* text, size_t size);

/* Whether all of `name` matches the first `size` bytes of `level`: `*`, `?`, sets in brackets,
 * negated by `^` or `!`, and backslash before a character that means itself. Characters are those
 * of UTF-8; a byte that is not UTF-8 is a character of its own. An unterminated set matches
 * nothing. */
bool glob_matches(const char* level, size_t size, const char* name);
