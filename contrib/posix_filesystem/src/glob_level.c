#include "glob_level.h"

#include <stdint.h>
#include <string.h>

bool glob_has_magic(const char* text, size_t size) {
  for (size_t i = 0; i < size; ++i)
    if (strchr("*?[\\", text[i]) != NULL && text[i] != '\0') return true;
  return false;
}

/* Bytes that a lead byte announces, 1 for a byte that leads nothing. */
static int announced(unsigned char lead) {
  if (lead >= 0xF0 && lead < 0xF8) return 4;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  return lead >= 0xC0 && lead < 0xE0 ? 2 : 1;
}

/* Reads one character; text ends at `end`, or with a NUL, which continues no character. Returns
 * where the next one starts. Bytes that are not UTF-8 get values above all of Unicode. */
static const char* next_character(const char* text, const char* end, uint32_t* value) {
  const unsigned char lead = (unsigned char)*text;
  const int size = announced(lead);
  uint32_t sum = size == 1 ? lead : lead & (0x7F >> size);
  for (int i = 1; i < size; ++i) {
    if (text + i == end || ((unsigned char)text[i] & 0xC0) != 0x80) {
      *value = 0x200000u + lead;
      return text + 1;
    }
    sum = sum << 6 | ((unsigned char)text[i] & 0x3F);
  }
  *value = size == 1 && lead >= 0x80 ? 0x200000u + lead : sum;
  return text + size;
}

static const char* next_in_name(const char* name, uint32_t* value) {
  return next_character(name, NULL, value);
}

/* A member of a set, which a backslash may precede. */
static const char* next_member(const char* set, const char* end, uint32_t* value) {
  if (*set == '\\' && set + 1 < end) ++set;
  return next_character(set, end, value);
}

/* `set` stands behind the bracket. Says whether the set holds `value`; returns what follows the
 * closing bracket, or NULL where there is none. */
static const char* match_set(const char* set, const char* end, uint32_t value, bool* holds) {
  const bool negated = set < end && (*set == '^' || *set == '!');
  if (negated) ++set;
  bool found = false;
  for (const char* first = set; set < end && (*set != ']' || set == first);) {
    uint32_t low;
    set = next_member(set, end, &low);
    uint32_t high = low;
    if (set + 1 < end && set[0] == '-' && set[1] != ']') set = next_member(set + 1, end, &high);
    found = found || (low <= value && value <= high);
  }
  if (set >= end) return NULL;
  *holds = found != negated;
  return set + 1;
}

/* Matches one character of a pattern other than `*` against the start of `*name`. Advances both,
 * or returns false and advances neither. */
static bool match_one(const char** level, const char* end, const char** name) {
  if (**name == '\0') return false;
  uint32_t value;
  const char* const behind = next_in_name(*name, &value);
  const char* next = *level + 1;
  bool same = true;
  if (**level == '[') {
    next = match_set(next, end, value, &same);
    if (next == NULL || !same) return false;
  } else if (**level != '?') {
    uint32_t wanted;
    next = next_member(*level, end, &wanted);
    if (wanted != value) return false;
  }
  *level = next;
  *name = behind;
  return true;
}

/* A star takes as little as possible at first; where the rest then fails, the last star takes one
 * character more. Stars before the last one never need to change. */
bool glob_matches(const char* level, size_t size, const char* name) {
  const char* const end = level + size;
  const char* behind_star = NULL;
  const char* taken = NULL;
  while (*name != '\0' || level < end) {
    if (level < end && *level == '*') {
      behind_star = ++level;
      taken = name;
    } else if (level < end && match_one(&level, end, &name)) {
      continue;
    } else if (behind_star != NULL && *taken != '\0') {
      uint32_t skipped;
      name = taken = next_in_name(taken, &skipped);
      level = behind_star;
    } else {
      return false;
    }
  }
  return true;
}
