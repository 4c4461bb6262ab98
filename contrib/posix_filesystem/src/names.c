#include "names.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void posix_drop_names(Names* names) {
  for (int i = 0; i < names->count; ++i) free(names->items[i]);
  free(names->items);
}

/* 0 or an errno. */
static int make_room(Names* names) {
  if (names->count < names->room) return 0;
  if (names->room > INT_MAX / 2) return EOVERFLOW; /* the contract counts in int */
  const int room = names->room == 0 ? 32 : names->room * 2;
  char** items = realloc(names->items, (size_t)room * sizeof(char*));
  if (items == NULL) return ENOMEM;
  names->items = items;
  names->room = room;
  return 0;
}

int posix_take_name(Names* names, char* name) {
  const int error = make_room(names);
  if (error == 0) names->items[names->count++] = name;
  return error;
}

static int add(Names* names, const char* name) {
  char* copy = strdup(name);
  if (copy == NULL) return ENOMEM;
  const int error = posix_take_name(names, copy);
  if (error != 0) free(copy);
  return error;
}

static bool is_self_or_parent(const char* name) {
  return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* readdir tells its end from an error by errno alone. */
int posix_read_names(DIR* directory, Names* names) {
  for (;;) {
    errno = 0;
    const struct dirent* entry = readdir(directory);
    if (entry == NULL) return errno;
    if (is_self_or_parent(entry->d_name)) continue;
    const int error = add(names, entry->d_name);
    if (error != 0) return error;
  }
}
