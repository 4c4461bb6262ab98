/* A filesystem plugin whose threads live as long as the process, and whose reads wait in the kernel.
 *
 * From init on, THREADS threads log and call the host without a pause. A read of
 *   restless://h/interrupted  ends at the first signal that interrupts it, and gives "i";
 *   restless://h/stubborn     goes on waiting after one, until a second came, and gives "ii";
 *   any other               gives "x" at once. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "modular_tf/env.h"
#include "modular_tf/filesystem.h"
#include "modular_tf/logging.h"
#include "modular_tf/status.h"

#ifndef THREADS
#define THREADS 4
#endif

static void* be_restless(void* unused) {
  (void)unused;
  for (unsigned turn = 0;; ++turn) {
    TF_Log(TF_INFO, "turn %u", turn);
    TF_Status* status = TF_NewStatus();
    TF_SetStatus(status, TF_INTERNAL, "of a thread");
    TF_DeleteStatus(status);
    (void)TF_NowNanos();
    if (turn % 8 == 0) poll(NULL, 0, 2);
  }
  return NULL;
}

static void start(TF_Filesystem* filesystem, TF_Status* status) {
  (void)filesystem;
  for (int number = 0; number < THREADS; ++number) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, be_restless, NULL) != 0) {
      TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no thread to be had");
      return;
    }
    pthread_detach(thread);
  }
}

static void end(TF_Filesystem* filesystem) { (void)filesystem; }

static void open_reader(const TF_Filesystem* filesystem, const char* path,
                        TF_RandomAccessFile* file, TF_Status* status) {
  (void)filesystem, (void)status;
  int* signals = calloc(1, sizeof(int));
  *signals = strstr(path, "stubborn") ? 2 : strstr(path, "interrupted") ? 1 : 0;
  file->plugin_file = signals;
}

static void clean_up(TF_RandomAccessFile* file) { free(file->plugin_file); }

/* What a test may ask for while a read waits: 1 and how many signals interrupted it; otherwise 0. */
static _Atomic int64_t progress;

static int64_t progress_now(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem, (void)path, (void)status;
  return progress;
}

/* Waits for signals, two minutes at most for each. They are let in only while it waits, so that each
 * one that is sent from then on interrupts it. */
static int wait_for_signals(int wanted) {
  sigset_t all, mask;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &mask);
  const struct timespec patience = {120, 0};
  int came = 0;
  progress = 1;
  while (came < wanted && ppoll(NULL, 0, &patience, &mask) < 0 && errno == EINTR)
    progress = 1 + ++came;
  progress = 0;
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
  return came;
}

static int64_t read_file(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
                         TF_Status* status) {
  (void)offset;
  const int wanted = *(int*)file->plugin_file;
  if (wanted > 0 && wait_for_signals(wanted) < wanted) {
    TF_SetStatus(status, TF_DEADLINE_EXCEEDED, "no signal came");
    return -1;
  }
  const size_t length = wanted == 0 ? 1 : (size_t)wanted;
  memset(buffer, wanted == 0 ? 'x' : 'i', length < n ? length : n);
  if (length < n) TF_SetStatus(status, TF_OUT_OF_RANGE, "the end");
  return (int64_t)(length < n ? length : n);
}

static void* heap(const void* bytes, size_t size) { return memcpy(malloc(size), bytes, size); }
static void* allocate(size_t size) { return malloc(size); }

void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  TF_FilesystemOps filesystem = {.init = start,
                                 .cleanup = end,
                                 .new_random_access_file = open_reader,
                                 .get_file_size = progress_now};
  TF_RandomAccessFileOps reader = {.cleanup = clean_up, .read = read_file};
  info->plugin_memory_allocate = allocate;
  info->plugin_memory_free = free;
  info->num_schemes = 1;
  info->ops = calloc(1, sizeof(TF_FilesystemPluginOps));
  TF_SetFilesystemVersionMetadata(info->ops);
  info->ops->scheme = heap("restless", 9);
  info->ops->filesystem_ops = heap(&filesystem, sizeof(filesystem));
  info->ops->random_access_file_ops = heap(&reader, sizeof(reader));
}
