/* A filesystem plugin whose reads wait for each other: a read returns when COMPANY of them, or more,
 * run at the same time, and fails after 60 s without. Cleaning up under a read ends the process. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plugin_parts.h"

typedef struct open_file {
  int reading;
} open_file;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int reading, released;

static void open_reader(const TF_Filesystem* filesystem, const char* path,
                        TF_RandomAccessFile* file, TF_Status* status) {
  (void)filesystem, (void)path, (void)status;
  file->plugin_file = calloc(1, sizeof(open_file));
}

static void clean_up(TF_RandomAccessFile* file) {
  open_file* mine = file->plugin_file;
  pthread_mutex_lock(&lock);
  if (mine->reading > 0) abort();
  pthread_mutex_unlock(&lock);
  free(mine);
}

/* Waits for company; as many reads as met go on together. */
static bool meet(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 60;
  int round = released;
  if (++reading >= COMPANY) {
    ++released;
    pthread_cond_broadcast(&changed);
  }
  int failed = 0;
  while (released == round && failed == 0)
    failed = pthread_cond_timedwait(&changed, &lock, &until);
  --reading;
  return failed == 0;
}

static int64_t read_file(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
                         TF_Status* status) {
  open_file* mine = file->plugin_file;
  pthread_mutex_lock(&lock);
  ++mine->reading;
  bool met = meet();
  memset(buffer, (int)('a' + offset), n);
  --mine->reading;
  pthread_mutex_unlock(&lock);
  if (!met) TF_SetStatus(status, TF_DEADLINE_EXCEEDED, "nobody came");
  return met ? (int64_t)n : -1;
}

/* So that a test can wait until a read is under way. */
static int64_t readers_now(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem, (void)path, (void)status;
  pthread_mutex_lock(&lock);
  int now = reading;
  pthread_mutex_unlock(&lock);
  return now;
}

void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  TF_FilesystemOps filesystem = {.init = start_nothing,
                                 .cleanup = end_nothing,
                                 .new_random_access_file = open_reader,
                                 .get_file_size = readers_now};
  TF_RandomAccessFileOps reader = {.cleanup = clean_up, .read = read_file};
  offer(info, "meet", &filesystem, &reader, NULL, NULL);
}
