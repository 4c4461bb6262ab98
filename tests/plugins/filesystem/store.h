/* A small filesystem in memory: directories and files by absolute path, behind one lock.
 *
 * A path begins with '/' and ends without one, except "/" itself, which is always a directory.
 * Every function may be called from any thread; the results are the codes that filesystem_ops.h
 * asks for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modular_tf/file_statistics.h"
#include "modular_tf/status.h"

typedef struct store store;

store* store_new(void);
void store_delete(store* store);

TF_Code store_stat(store* store, const char* path, TF_FileStatistics* statistics);

/* OK when a file could stand at `path`: its parent is a directory and it is not one itself. */
TF_Code store_prepare_file(store* store, const char* path, bool truncate);
TF_Code store_append(store* store, const char* path, const char* bytes, size_t size);

/* Reads as random-access `read` does. */
int64_t store_read(store* store, const char* path, uint64_t offset, size_t size, char* buffer,
                   TF_Code* code);

TF_Code store_make_dir(store* store, const char* path);
TF_Code store_make_dirs(store* store, const char* path);
TF_Code store_remove(store* store, const char* path, bool directory);
TF_Code store_remove_tree(store* store, const char* path);
TF_Code store_rename(store* store, const char* source, const char* target);
TF_Code store_copy(store* store, const char* source, const char* target);

/* Calls `visit` with the path of everything that there is, newest first. */
typedef void (*store_visitor)(const char* path, void* context);
void store_each(store* store, store_visitor visit, void* context);

/* The name of `path` below `parent`, or NULL when it is not a direct child. */
const char* store_child_name(const char* parent, const char* path);
