#define _POSIX_C_SOURCE 200809L
#include "store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct node {
  struct node* next;
  char* path;
  bool is_directory;
  char* bytes;
  size_t size;
  int64_t changed_nsec;
} node;

struct store {
  pthread_mutex_t lock;
  node* nodes;
};

/* Everything below that is static runs with the lock held. */

static node* find(store* store, const char* path) {
  for (node* entry = store->nodes; entry != NULL; entry = entry->next)
    if (strcmp(entry->path, path) == 0) return entry;
  return NULL;
}

static void touch(node* entry) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  entry->changed_nsec = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static node* add(store* store, const char* path, bool is_directory) {
  node* made = calloc(1, sizeof(node));
  if (made == NULL || (made->path = strdup(path)) == NULL) abort();
  made->is_directory = is_directory;
  touch(made);
  made->next = store->nodes;
  store->nodes = made;
  return made;
}

static void drop(store* store, node* entry) {
  node** place = &store->nodes;
  while (*place != entry) place = &(*place)->next;
  *place = entry->next;
  free(entry->path);
  free(entry->bytes);
  free(entry);
}

static bool lies_in(const char* path, const char* directory) {
  size_t length = strcmp(directory, "/") == 0 ? 0 : strlen(directory);
  return strncmp(path, directory, length) == 0 && path[length] == '/' && path[length + 1] != '\0';
}

const char* store_child_name(const char* parent, const char* path) {
  if (!lies_in(path, parent)) return NULL;
  const char* name = path + (strcmp(parent, "/") == 0 ? 0 : strlen(parent)) + 1;
  return strchr(name, '/') == NULL ? name : NULL;
}

static TF_Code check_parent(store* store, const char* path) {
  const char* slash = strrchr(path, '/');
  if (slash == NULL) return TF_INVALID_ARGUMENT;
  if (slash == path) return TF_OK;
  char* parent = strndup(path, (size_t)(slash - path));
  const node* entry = find(store, parent);
  free(parent);
  if (entry == NULL) return TF_NOT_FOUND;
  return entry->is_directory ? TF_OK : TF_FAILED_PRECONDITION;
}

static TF_Code make_dir(store* store, const char* path) {
  if (find(store, path) != NULL) return TF_ALREADY_EXISTS;
  TF_Code code = check_parent(store, path);
  if (code == TF_OK) add(store, path, true);
  return code;
}

static TF_Code prepare_file(store* store, const char* path, bool truncate) {
  node* entry = find(store, path);
  if (entry != NULL && entry->is_directory) return TF_FAILED_PRECONDITION;
  TF_Code code = check_parent(store, path);
  if (code != TF_OK) return code;
  if (entry == NULL) entry = add(store, path, false);
  if (truncate) entry->size = 0;
  touch(entry);
  return TF_OK;
}

static TF_Code append(store* store, const char* path, const char* bytes, size_t size) {
  node* entry = find(store, path);
  if (entry == NULL || entry->is_directory) return TF_NOT_FOUND;
  char* grown = realloc(entry->bytes, entry->size + size + 1);
  if (grown == NULL) return TF_RESOURCE_EXHAUSTED;
  entry->bytes = grown;
  if (size > 0) memcpy(grown + entry->size, bytes, size);
  entry->size += size;
  touch(entry);
  return TF_OK;
}

static bool has_children(store* store, const char* path) {
  for (const node* entry = store->nodes; entry != NULL; entry = entry->next)
    if (lies_in(entry->path, path)) return true;
  return false;
}

static TF_Code remove_one(store* store, const char* path, bool directory) {
  node* entry = find(store, path);
  if (entry == NULL) return TF_NOT_FOUND;
  if (entry->is_directory != directory) return TF_FAILED_PRECONDITION;
  if (strcmp(path, "/") == 0 || has_children(store, path)) return TF_FAILED_PRECONDITION;
  drop(store, entry);
  return TF_OK;
}

static TF_Code copy_file(store* store, const char* source, const char* target) {
  const node* from = find(store, source);
  if (from == NULL) return TF_NOT_FOUND;
  if (from->is_directory) return TF_FAILED_PRECONDITION;
  if (strcmp(source, target) == 0) return TF_OK;
  TF_Code code = prepare_file(store, target, true);
  return code == TF_OK ? append(store, target, from->bytes, from->size) : code;
}

/* Gives `entry`, which is `source` or lies in it, its new place. */
static void move(node* entry, const char* source, const char* target) {
  const char* rest = entry->path + strlen(source);
  char* path = malloc(strlen(target) + strlen(rest) + 1);
  if (path == NULL) abort();
  strcat(strcpy(path, target), rest);
  free(entry->path);
  entry->path = path;
}

static TF_Code rename_tree(store* store, const char* source, const char* target) {
  if (find(store, source) == NULL) return TF_NOT_FOUND;
  if (strcmp(source, target) == 0) return TF_OK;
  TF_Code code = check_parent(store, target);
  if (code != TF_OK) return code;
  node* replaced = find(store, target);
  if (replaced != NULL && replaced->is_directory) return TF_FAILED_PRECONDITION;
  if (lies_in(target, source)) return TF_INVALID_ARGUMENT;
  if (replaced != NULL) drop(store, replaced);
  for (node* entry = store->nodes; entry != NULL; entry = entry->next)
    if (strcmp(entry->path, source) == 0 || lies_in(entry->path, source))
      move(entry, source, target);
  return TF_OK;
}

/* The public functions take the lock, and nothing else. */

#define LOCKED(store, type, expression)    \
  pthread_mutex_lock(&(store)->lock);      \
  const type result = (expression);        \
  pthread_mutex_unlock(&(store)->lock);    \
  return result

store* store_new(void) {
  store* made = calloc(1, sizeof(store));
  if (made == NULL) return NULL;
  pthread_mutex_init(&made->lock, NULL);
  add(made, "/", true);
  return made;
}

void store_delete(store* store) {
  while (store->nodes != NULL) drop(store, store->nodes);
  pthread_mutex_destroy(&store->lock);
  free(store);
}

static TF_Code describe(store* store, const char* path, TF_FileStatistics* statistics) {
  const node* entry = find(store, path);
  if (entry == NULL) return TF_NOT_FOUND;
  statistics->length = (int64_t)entry->size;
  statistics->mtime_nsec = entry->changed_nsec;
  statistics->is_directory = entry->is_directory;
  return TF_OK;
}

TF_Code store_stat(store* store, const char* path, TF_FileStatistics* statistics) {
  LOCKED(store, TF_Code, describe(store, path, statistics));
}

TF_Code store_prepare_file(store* store, const char* path, bool truncate) {
  LOCKED(store, TF_Code, prepare_file(store, path, truncate));
}

TF_Code store_append(store* store, const char* path, const char* bytes, size_t size) {
  LOCKED(store, TF_Code, append(store, path, bytes, size));
}

static int64_t read_bytes(store* store, const char* path, uint64_t offset, size_t size,
                          char* buffer, TF_Code* code) {
  const node* entry = find(store, path);
  *code = entry == NULL ? TF_NOT_FOUND : TF_OK;
  if (entry == NULL) return -1;
  size_t left = offset < entry->size ? entry->size - (size_t)offset : 0;
  size_t count = size < left ? size : left;
  if (count > 0) memcpy(buffer, entry->bytes + offset, count);
  if (count < size) *code = TF_OUT_OF_RANGE;
  return (int64_t)count;
}

int64_t store_read(store* store, const char* path, uint64_t offset, size_t size, char* buffer,
                   TF_Code* code) {
  LOCKED(store, int64_t, read_bytes(store, path, offset, size, buffer, code));
}

TF_Code store_make_dir(store* store, const char* path) {
  LOCKED(store, TF_Code, make_dir(store, path));
}

static TF_Code make_dirs(store* store, const char* path) {
  char* part = strdup(path);
  TF_Code code = part == NULL ? TF_RESOURCE_EXHAUSTED : TF_OK;
  for (char* slash = part; code == TF_OK && slash != NULL;) {
    slash = strchr(slash + 1, '/');
    if (slash != NULL) *slash = '\0';
    const node* entry = find(store, part);
    if (entry == NULL) code = make_dir(store, part);
    else if (!entry->is_directory) code = TF_FAILED_PRECONDITION;
    if (slash != NULL) *slash = '/';
  }
  free(part);
  return code;
}

TF_Code store_make_dirs(store* store, const char* path) {
  LOCKED(store, TF_Code, make_dirs(store, path));
}

TF_Code store_remove(store* store, const char* path, bool directory) {
  LOCKED(store, TF_Code, remove_one(store, path, directory));
}

static TF_Code remove_tree(store* store, const char* path) {
  node* root = find(store, path);
  if (root == NULL) return TF_NOT_FOUND;
  for (node *entry = store->nodes, *next; entry != NULL; entry = next) {
    next = entry->next;
    if (lies_in(entry->path, path)) drop(store, entry);
  }
  if (strcmp(path, "/") != 0) drop(store, root);
  return TF_OK;
}

TF_Code store_remove_tree(store* store, const char* path) {
  LOCKED(store, TF_Code, remove_tree(store, path));
}

TF_Code store_rename(store* store, const char* source, const char* target) {
  LOCKED(store, TF_Code, rename_tree(store, source, target));
}

TF_Code store_copy(store* store, const char* source, const char* target) {
  LOCKED(store, TF_Code, copy_file(store, source, target));
}

void store_each(store* store, store_visitor visit, void* context) {
  pthread_mutex_lock(&store->lock);
  for (const node* entry = store->nodes; entry != NULL; entry = entry->next)
    visit(entry->path, context);
  pthread_mutex_unlock(&store->lock);
}
