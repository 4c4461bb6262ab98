/* Expanding a glob pattern. The host could do it from get_children and is_directory, one call per
 * entry; here the directory itself says which of its entries are directories.
 *
 * Dots in a path are left to the kernel. What is not there, or is no directory, does not match;
 * every other error ends the search. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "operations.h"
#include "tree_removal.h"

/* -- one level of a pattern, the part between two slashes -- */

/* Whether the first `size` bytes hold a character that is special in a pattern. */
static bool glob_has_magic(const char* text, size_t size) {
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
/* Whether all of `name` matches the first `size` bytes of `level`: `*`, `?`, sets in brackets,
 * negated by `^` or `!`, and backslash before a character that means itself. Characters are those
 * of UTF-8; a byte that is not UTF-8 is a character of its own. An unterminated set matches
 * nothing. */
static bool glob_matches(const char* level, size_t size, const char* name) {
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

/* -- the search -- */

/* Paths are kept with the scheme and host that the pattern has in front, since results have them
 * too; the kernel gets what is behind. */
typedef struct Search {
  size_t in_front;
  Names found;
  char failed[PATH_MAX]; /* what the error that ended the search is about */
} Search;

/* One level of the pattern. */
typedef struct Level {
  const char* text;
  size_t size;
  const char* rest; /* the levels below it; empty for none */
} Level;

static int expand(Search* search, const char* parent, const char* rest);

static int fail_at(Search* search, const char* path, int error) {
  if (error == ENOENT || error == ENOTDIR) return 0;
  snprintf(search->failed, sizeof(search->failed), "%s", path);
  return error;
}

/* NULL when out of memory. */
static char* joined(const char* parent, const char* name, size_t size) {
  const size_t length = strlen(parent);
  const char* const slash = length > 0 && parent[length - 1] == '/' ? "" : "/";
  char* path = malloc(length + size + 2);
  if (path != NULL) sprintf(path, "%s%s%.*s", parent, slash, (int)size, name);
  return path;
}

/* `path` becomes one of `paths`. */
static int keep(Names* paths, char* path) {
  const int error = posix_take_name(paths, path);
  if (error != 0) free(path);
  return error;
}

static bool is_last(const Level* level) { return *level->rest == '\0'; }

static int literal_level(Search* search, const char* parent, const Level* level) {
  char* path = joined(parent, level->text, level->size);
  if (path == NULL) return ENOMEM;
  if (is_last(level) && access(path + search->in_front, F_OK) == 0) {
    return keep(&search->found, path);
  }
  const int error =
      is_last(level) ? fail_at(search, path, errno) : expand(search, path, level->rest);
  free(path);
  return error;
}

/* A link counts as what it points to, and some filesystems do not say what an entry is. */
static bool is_directory(const struct dirent* entry, const char* path) {
  if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN) return entry->d_type == DT_DIR;
  struct stat facts;
  return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* Adds the path of `entry` to `matches` if it can have results. */
static int match(const Search* search, const char* parent, const Level* level,
                 const struct dirent* entry, Names* matches) {
  char* path = joined(parent, entry->d_name, strlen(entry->d_name));
  if (path == NULL) return ENOMEM;
  if (is_last(level) || is_directory(entry, path + search->in_front)) return keep(matches, path);
  free(path);
  return 0;
}

static bool is_self_or_parent(const char* name) {
  return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int match_entries(Search* search, DIR* directory, const char* parent, const Level* level,
                         Names* matches) {
  int error = 0;
  while (error == 0) {
    errno = 0;
    const struct dirent* entry = readdir(directory);
    if (entry == NULL) return fail_at(search, parent, errno);
    if (is_self_or_parent(entry->d_name)) continue;
    if (!glob_matches(level->text, level->size, entry->d_name)) continue;
    error = match(search, parent, level, entry, matches);
  }
  return error;
}

/* The directory is closed before the next level is searched: a deep pattern needs no more
 * descriptors than a flat one. */
static int wild_level(Search* search, const char* parent, const Level* level) {
  DIR* directory = opendir(parent + search->in_front);
  if (directory == NULL) return fail_at(search, parent, errno);
  Names below = {NULL, 0, 0};
  Names* matches = is_last(level) ? &search->found : &below;
  int error = match_entries(search, directory, parent, level, matches);
  closedir(directory);
  for (int i = 0; error == 0 && i < below.count; ++i) {
    error = expand(search, below.items[i], level->rest);
  }
  posix_drop_names(&below);
  return error;
}

/* Adds what matches below `parent`. 0 or an errno. */
static int expand(Search* search, const char* parent, const char* rest) {
  Level level = {.text = rest + strspn(rest, "/")};
  level.size = strcspn(level.text, "/");
  level.rest = level.text + level.size + strspn(level.text + level.size, "/");
  const bool wild = glob_has_magic(level.text, level.size);
  return (wild ? wild_level : literal_level)(search, parent, &level);
}

/* Length of "scheme://host" in front of a path; 0 for a plain path. */
static size_t length_in_front(const char* uri) {
  const size_t scheme = strspn(uri, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.");
  if (scheme < 2 || strncmp(uri + scheme, "://", 3) != 0) return 0;
  return scheme + 3 + strcspn(uri + scheme + 3, "/");
}

/* Where the first level with a wildcard starts; the end of a pattern without one. */
static size_t first_wild_level(const char* path) {
  size_t start = 0;
  for (size_t i = 0; !glob_has_magic(path + i, 1); ++i) {
    if (path[i] == '\0') return i;
    if (path[i] == '/') start = i + 1;
  }
  return start;
}

/* The directory that a search starts from: the first `size` bytes of the pattern's path, without
 * the slashes at its end unless they are the root; "." for a plain pattern without a directory. */
static char* starting_directory(const char* pattern, size_t in_front, size_t size) {
  if (in_front + size == 0) return strdup(".");
  const char* const path = pattern + in_front;
  while (size > 1 && path[size - 1] == '/') --size;
  return strndup(pattern, in_front + size);
}

/* A pattern without wildcards is its own result if something is there. */
static int search_literal(Search* search, const char* pattern) {
  char* directory = starting_directory(pattern, search->in_front, strlen(pattern) - search->in_front);
  if (directory == NULL) return ENOMEM;
  const char* const path = directory + search->in_front;
  const bool present = access(*path == '\0' ? "/" : path, F_OK) == 0;
  const int error = present ? 0 : fail_at(search, pattern, errno);
  free(directory);
  if (!present) return error;
  char* result = strdup(pattern);
  return result == NULL ? ENOMEM : keep(&search->found, result);
}

static int search_from(Search* search, const char* pattern) {
  const char* const path = pattern + search->in_front;
  const size_t start = first_wild_level(path);
  if (path[start] == '\0') return *pattern == '\0' ? 0 : search_literal(search, pattern);
  char* directory = starting_directory(pattern, search->in_front, start);
  if (directory == NULL) return ENOMEM;
  const int error = expand(search, directory, path + start);
  free(directory);
  return error;
}

int posix_get_matching_paths(const TF_Filesystem* filesystem, const char* pattern,
                             char*** entries, TF_Status* status) {
  (void)filesystem;
  Search search = {length_in_front(pattern), {NULL, 0, 0}, ""};
  if (glob_has_magic(pattern, search.in_front)) {
    posix_refuse(status, TF_INVALID_ARGUMENT, pattern, "wildcards may stand in the path only");
    return -1;
  }
  const int error = search_from(&search, pattern);
  if (error != 0) {
    posix_drop_names(&search.found);
    posix_fail(status, error, *search.failed == '\0' ? pattern : search.failed);
    return -1;
  }
  *entries = search.found.items;
  posix_succeed(status);
  return search.found.count;
}
