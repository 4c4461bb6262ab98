/* A filesystem plugin whose reads and path_exists end the process, or do not return, as the path says: ending://h/HOW
 * with HOW one of those of `how_to_end`; "children" ends children of the plugin's own. "close" hangs when it is written and closed; a fraction of a
 * second is in CLOSE_SECONDS. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plugin_parts.h"

static void wait_seconds(unsigned seconds) {
  const struct timespec second = {1, 0};
  while (seconds-- > 0) nanosleep(&second, NULL); /* a signal ends one of them only */
}

static int overflow(int depth) {
  volatile char frame[4096];
  frame[0] = (char)depth;
  return depth < 0 ? frame[0] : overflow(depth + 1) + frame[0];
}

static void end_children(void) {
  for (int number = 0; number < 2; ++number) {
    const pid_t child = fork();
    if (child == 0 && number == 0) exit(3);
    if (child == 0) abort();
    waitpid(child, NULL, 0);
  }
}

static void how_to_end(const char* how) {
  if (strcmp(how, "/segv") == 0) *(volatile int*)8 = 1;
  if (strcmp(how, "/abort") == 0) abort();
  if (strcmp(how, "/exit") == 0) exit(3);
  if (strcmp(how, "/overflow") == 0) overflow(0);
  if (strcmp(how, "/children") == 0) end_children();
  if (strcmp(how, "/hang") == 0) wait_seconds(600);
  if (strcmp(how, "/end-thread") == 0) pthread_exit(NULL);
  if (strcmp(how, "/cancel-thread") == 0) {
    pthread_cancel(pthread_self());
    pthread_testcancel();
  }
}

static void open_reader(const TF_Filesystem* filesystem, const char* path,
                        TF_RandomAccessFile* file, TF_Status* status) {
  (void)filesystem, (void)status;
  file->plugin_file = strdup(path);
}

static int64_t read_file(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
                         TF_Status* status) {
  (void)offset, (void)n, (void)buffer;
  how_to_end(file->plugin_file);
  TF_SetStatus(status, TF_OUT_OF_RANGE, "the end");
  return 0;
}

static void close_reader(TF_RandomAccessFile* file) { free(file->plugin_file); }

static void open_writer(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file,
                        TF_Status* status) {
  (void)filesystem, (void)status;
  file->plugin_file = strdup(path);
}

static void append(const TF_WritableFile* file, const char* data, size_t n, TF_Status* status) {
  (void)file, (void)data, (void)n, (void)status;
}

static void close_written(const TF_WritableFile* file, TF_Status* status) {
  (void)status;
  const char* seconds = strrchr(file->plugin_file, '/') + 1;
  wait_seconds((unsigned)atoi(seconds));
}

static void free_writer(TF_WritableFile* file) { free(file->plugin_file); }

static int64_t size_of(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem, (void)path, (void)status;
  return 16;
}

static void stat_path(const TF_Filesystem* filesystem, const char* path, TF_FileStatistics* found,
                      TF_Status* status) {
  (void)filesystem, (void)path, (void)status;
  found->length = 16;
}

static void exists(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem, (void)status;
  how_to_end(path);
}

void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  const TF_FilesystemOps filesystem = {.init = start_nothing,
                                       .cleanup = end_nothing,
                                       .new_random_access_file = open_reader,
                                       .new_writable_file = open_writer,
                                       .path_exists = exists,
                                       .stat = stat_path,
                                       .get_file_size = size_of};
  const TF_RandomAccessFileOps reader = {.cleanup = close_reader, .read = read_file};
  const TF_WritableFileOps writer = {
      .cleanup = free_writer, .append = append, .close = close_written};
  offer(info, "ending", &filesystem, &reader, &writer, NULL);
}
