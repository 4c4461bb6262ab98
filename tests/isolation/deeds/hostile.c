/* The well-behaved fixture plugin, whose TF_InitPlugin was renamed to fixture_init, with deeds: a path
 * that has `/deed/NAME` in it makes any call on it do that deed first. A file `/deed/read/NAME`,
 * `/deed/append/NAME` or `/deed/release/NAME` opens well, and does it when it is read, written, or closed
 * after reading; `/deed/translate/NAME` does it when the name is translated. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "deed.h"
#include "good_filesystem.h"
#include "ledger.h"
#include "modular_tf/filesystem.h"

void fixture_init(TF_FilesystemPluginInfo* info);

static const deed* const all_deeds[] = {ending_deeds,     signal_deeds,  resource_deeds,
                                        descriptor_deeds, process_deeds, protocol_deeds};
static const deed* deed_at_read;
static const deed* deed_at_append;
static const deed* deed_at_release;
static int appends_left = -1; /* of a file `/full-after/N`, the disk is full then; -1: no end */
static TF_RandomAccessFileOps good_reader;
static TF_WritableFileOps good_writer;

static const deed* find_deed(const char* name) {
  for (size_t i = 0; i < sizeof all_deeds / sizeof *all_deeds; ++i)
    for (const deed* found = all_deeds[i]; found->name != NULL; ++found)
      if (strcmp(found->name, name) == 0) return found;
  fprintf(stderr, "there is no deed %s\n", name);
  _Exit(99);
}

/* Returns what follows `marker`, NULL where it is not in the path. */
static const char* after(const char* path, const char* marker) {
  const char* found = strstr(path, marker);
  return found == NULL ? NULL : found + strlen(marker);
}

static void do_deed(const char* path) {
  const char* name = after(path, "/deed/");
  if (name != NULL && strchr(name, '/') == NULL) find_deed(name)->act();
}

static void* run_and_forget(void* work) {
  ((void* (*)(void*))work)(NULL);
  return NULL;
}

void on_thread(void* (*work)(void*), int joins) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run_and_forget, (void*)work) != 0) return;
  if (joins) {
    pthread_join(thread, NULL);
  } else {
    pthread_detach(thread);
  }
}

void sleep_ms(int milliseconds) {
  const struct timespec wait = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
  nanosleep(&wait, NULL);
}

/* ---- the slots ---- */

static void path_exists(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  do_deed(path);
  if (strstr(path, "/deed/") == NULL) {
    good_filesystem_ops.path_exists(filesystem, path, status);
  } else {
    TF_SetStatus(status, TF_OK, "");
  }
}

static void open_reader(const TF_Filesystem* filesystem, const char* path, TF_RandomAccessFile* file,
                        TF_Status* status) {
  const char* name = after(path, "/deed/read/");
  if (name != NULL) deed_at_read = find_deed(name);
  const char* last = after(path, "/deed/release/");
  if (last != NULL) deed_at_release = find_deed(name = last);
  good_filesystem_ops.new_random_access_file(filesystem, name == NULL ? path : "/data", file, status);
}

static int64_t read_file(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
                         TF_Status* status) {
  const deed* due = deed_at_read;
  deed_at_read = NULL;
  if (due != NULL) due->act();
  return good_reader.read(file, offset, n, buffer, status);
}

static void release_reader(TF_RandomAccessFile* file) {
  const deed* due = deed_at_release;
  deed_at_release = NULL;
  if (due != NULL) due->act();
  good_reader.cleanup(file);
}

static void open_writer(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file,
                        TF_Status* status) {
  const char* name = after(path, "/deed/append/");
  if (name != NULL) deed_at_append = find_deed(name);
  const char* full_after = after(path, "/full-after/");
  appends_left = full_after == NULL ? -1 : atoi(full_after);
  if (full_after != NULL) name = full_after;
  good_filesystem_ops.new_writable_file(filesystem, name == NULL ? path : "/written", file, status);
}

static void append(const TF_WritableFile* file, const char* data, size_t n, TF_Status* status) {
  const deed* due = deed_at_append;
  deed_at_append = NULL;
  if (due != NULL) due->act();
  if (appends_left == 0) return TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "the disk is full");
  if (appends_left > 0) --appends_left;
  good_writer.append(file, data, n, status);
}

/* Lists many names, or one without a reasonable end. */
static int list(char*** entries, int count, size_t length) {
  *entries = ledger_allocate((size_t)count * sizeof(char*));
  for (int i = 0; i < count; ++i) {
    char* name = ledger_allocate(length + 1);
    if (name == NULL) return -1;
    memset(name, 'n', length);
    name[length] = '\0';
    (*entries)[i] = name;
  }
  return count;
}

/* Takes memory for names, for ever. */
static int list_without_end(char*** entries) {
  for (;;) {
    sleep_ms(1);
    if (list(entries, 100, 100) < 0) return -1;
  }
}

static int get_children(const TF_Filesystem* filesystem, const char* path, char*** entries,
                        TF_Status* status) {
  const char* name = after(path, "/listing/");
  if (name == NULL) return good_filesystem_ops.get_children(filesystem, path, entries, status);
  TF_SetStatus(status, TF_OK, "");
  if (strcmp(name, "endless") == 0) return list_without_end(entries);
  if (strcmp(name, "many") == 0) return list(entries, 20000, 1000);
  if (strcmp(name, "long-name") == 0) return list(entries, 1, (size_t)200 << 20);
  if (strcmp(name, "lying-count") == 0) return list(entries, 3, 3) + (1 << 30);
  if (strcmp(name, "null-names") == 0) {
    *entries = ledger_allocate(100 * sizeof(char*));
    memset(*entries, 0, 100 * sizeof(char*));
  }
  return 100; /* no-array: *entries stays as it is */
}

static char* translate_name(const TF_Filesystem* filesystem, const char* uri) {
  const char* name = after(uri, "/deed/translate/");
  if (name == NULL || strcmp(name, "name-without-end") != 0) {
    if (name != NULL) find_deed(name)->act();
    return good_filesystem_ops.translate_name(filesystem, uri);
  }
  const size_t length = (size_t)40 << 20;
  char* whole = ledger_allocate(length + 1);
  memset(whole, 'x', length);
  whole[length] = '\0';
  return whole;
}

/* As long as the file exists that HOSTILE_HELD names, which says then that somebody waits. */
static void wait_until_let_go(void) {
  const char* held = getenv("HOSTILE_HELD");
  const int file = held == NULL ? -1 : open(held, O_WRONLY);
  if (file >= 0) {
    if (write(file, "w", 1) != 1) abort();
    close(file);
  }
  while (held != NULL && access(held, F_OK) == 0) sleep_ms(10);
}

__attribute__((visibility("default"))) void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  wait_until_let_go();
  fixture_init(info);
  TF_FilesystemPluginOps* ops = info->ops;
  good_reader = *ops->random_access_file_ops;
  good_writer = *ops->writable_file_ops;
  ops->random_access_file_ops->read = read_file;
  ops->random_access_file_ops->cleanup = release_reader;
  ops->writable_file_ops->append = append;
  ops->filesystem_ops->path_exists = path_exists;
  ops->filesystem_ops->new_random_access_file = open_reader;
  ops->filesystem_ops->new_writable_file = open_writer;
  ops->filesystem_ops->get_children = get_children;
  ops->filesystem_ops->translate_name = translate_name;
}
