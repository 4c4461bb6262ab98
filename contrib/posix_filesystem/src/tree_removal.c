#include "tree_removal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void posix_drop_names(Names* names) {
  for (int i = 0; i < names->count; ++i) free(names->items[i]);
  free(names->items);
}

/* 0 or an errno. */
static int make_room_for_name(Names* names) {
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
  const int error = make_room_for_name(names);
  if (error == 0) names->items[names->count++] = name;
  return error;
}

static int add_name(Names* names, const char* name) {
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
    const int error = add_name(names, entry->d_name);
    if (error != 0) return error;
  }
}

/* -- deletion: from the leaves up, relative to open directories, so that nothing outside is touched even if
 * somebody swaps a directory for a link meanwhile. The directories from the top to where the walk
 * is are a list on the heap; below the first few only the last one is open, and ".." of what is in
 * it leads back, where its inode shows that nobody has moved it -- */

enum { kHeldLevels = 16, kNoDescriptor = -1 };

typedef struct Level {
  int descriptor; /* kNoDescriptor while it is closed, or lost */
  dev_t device;
  ino_t inode;
  Names names;
  int done;  /* how many of the names */
  int error; /* errno that kept it from being listed whole; 0 for none */
} Level;

typedef struct Walk {
  TreeRemoval removal;
  const char* top; /* the path of the first level */
  Level* levels;   /* from the top down */
  int depth;
  int room;
} Walk;

/* Counts one entry that stays. */
static void leave(TreeRemoval* removal, uint64_t* count, int error, const char* name) {
  ++*count;
  if (removal->error != 0) return;
  removal->error = error;
  snprintf(removal->where, sizeof(removal->where), "%s", name);
}

static void leave_directory(TreeRemoval* removal, int error, const char* name) {
  leave(removal, &removal->undeleted_dirs, error, name);
}

static int open_directory(int parent, const char* name) {
  return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool make_room(Walk* walk) {
  if (walk->depth < walk->room) return true;
  const int room = walk->room == 0 ? 16 : walk->room * 2;
  Level* levels = realloc(walk->levels, (size_t)room * sizeof(Level));
  if (levels == NULL) return false;
  walk->levels = levels;
  walk->room = room;
  return true;
}

/* The stream takes a descriptor of its own, and its buffer goes with it. 0 or an errno. */
static int list(int descriptor, Names* names) {
  const int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  DIR* directory = own < 0 ? NULL : fdopendir(own);
  if (directory == NULL) {
    const int error = errno;
    if (own >= 0) close(own);
    return error;
  }
  const int error = posix_read_names(directory, names);
  closedir(directory);
  return error;
}

/* Makes `name` the last level. 0 or an errno. */
static int enter(Walk* walk, int parent, const char* name) {
  if (!make_room(walk)) return ENOMEM;
  Level level = {.descriptor = open_directory(parent, name), .names = {NULL, 0, 0}};
  struct stat facts;
  if (level.descriptor < 0) return errno;
  if (fstat(level.descriptor, &facts) != 0) {
    const int error = errno;
    close(level.descriptor);
    return error;
  }
  level.device = facts.st_dev;
  level.inode = facts.st_ino;
  level.error = list(level.descriptor, &level.names);
  walk->levels[walk->depth++] = level;
  return 0;
}

/* A directory that cannot be listed may still be empty, so it is removed if it can be. */
static void remove_directory(Walk* walk, int parent, const char* name, int listing_error) {
  if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return;
  leave_directory(&walk->removal, listing_error != 0 ? listing_error : errno, name);
}

static bool is_directory(int parent, const char* name) {
  struct stat facts;
  return fstatat(parent, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(facts.st_mode);
}

/* Most entries are files: one call each. Somebody else may have been faster. True for a directory
 * that was entered. */
static bool remove_or_enter(Walk* walk, int parent, const char* name) {
  if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) return false;
  const int error = errno;
  if (!is_directory(parent, name)) {
    leave(&walk->removal, &walk->removal.undeleted_files, error, name);
    return false;
  }
  const int refusal = enter(walk, parent, name);
  if (refusal != 0) remove_directory(walk, parent, name, refusal);
  return refusal == 0;
}

static void close_level(Level* level) {
  if (level->descriptor != kNoDescriptor) close(level->descriptor);
  level->descriptor = kNoDescriptor;
}

/* Opens a closed level again from the one below it. */
static void open_again(Level* level, const Level* below) {
  if (level->descriptor != kNoDescriptor || below->descriptor == kNoDescriptor) return;
  struct stat facts;
  const int descriptor = open_directory(below->descriptor, "..");
  const bool same = descriptor >= 0 && fstat(descriptor, &facts) == 0 &&
                    facts.st_dev == level->device && facts.st_ino == level->inode;
  if (same) {
    level->descriptor = descriptor;
  } else if (descriptor >= 0) {
    close(descriptor);
  }
}

static bool is_done(const Level* level) { return level->done == level->names.count; }

static void remove_next(Walk* walk) {
  const int depth = walk->depth;
  Level* level = &walk->levels[depth - 1];
  const char* name = level->names.items[level->done++];
  const bool entered = remove_or_enter(walk, level->descriptor, name);
  if (entered && depth > kHeldLevels) close_level(&walk->levels[depth - 1]);
}

/* Ends the last level, which is done, and removes it from the one above. */
static void ascend(Walk* walk) {
  Level* level = &walk->levels[--walk->depth];
  Level* above = walk->depth == 0 ? NULL : level - 1;
  const char* name = above == NULL ? walk->top : above->names.items[above->done - 1];
  if (above != NULL) open_again(above, level);
  if (above == NULL) {
    remove_directory(walk, AT_FDCWD, name, level->error);
  } else if (above->descriptor != kNoDescriptor) {
    remove_directory(walk, above->descriptor, name, level->error);
  } else {
    leave_directory(&walk->removal, ESTALE, name); /* it was moved: there is no way back */
    above->done = above->names.count;
  }
  close_level(level);
  posix_drop_names(&level->names);
}

static TreeRemoval remove_tree(const char* top) {
  Walk walk = {.top = top};
  struct stat facts;
  if (lstat(top, &facts) != 0) {
    leave_directory(&walk.removal, errno, top);
  } else {
    remove_or_enter(&walk, AT_FDCWD, top);
  }
  while (walk.depth > 0) {
    if (is_done(&walk.levels[walk.depth - 1])) {
      ascend(&walk);
    } else {
      remove_next(&walk);
    }
  }
  free(walk.levels);
  return walk.removal;
}

static void strip_trailing_slashes(char* path) {
  size_t end = strlen(path);
  while (end > 1 && path[end - 1] == '/') path[--end] = '\0';
}

/* "/" and whatever ends in "." or ".." cannot be removed in the end, so nothing inside is either. */
static bool must_stay(const char* path) {
  const char* slash = strrchr(path, '/');
  const char* last = slash == NULL ? path : slash + 1;
  return strcmp(path, "/") == 0 || strcmp(last, ".") == 0 || strcmp(last, "..") == 0;
}

static TreeRemoval refused(int error, const char* path) {
  TreeRemoval removal = {0};
  leave_directory(&removal, error, path);
  return removal;
}

TreeRemoval posix_remove_tree(const char* path) {
  char* top = strdup(path);
  if (top == NULL) return refused(ENOMEM, path);
  strip_trailing_slashes(top); /* "link/" would mean the directory behind the link */
  const TreeRemoval removal = must_stay(top) ? refused(EBUSY, path) : remove_tree(top);
  free(top);
  return removal;
}
