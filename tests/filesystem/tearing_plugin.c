/* A filesystem plugin whose appends fail when a pipe is closed, and whose close leaves a file: what
 * "tear://h/PATH" names is the pipe, and PATH.stored comes to be when the writer is closed. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin_parts.h"

static void open_writer(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file,
                        TF_Status* status) {
  (void)filesystem, (void)status;
  file->plugin_file = strdup(path);
}

static void append(const TF_WritableFile* file, const char* data, size_t n, TF_Status* status) {
  (void)data, (void)n;
  char byte;
  const int pipe = open(file->plugin_file, O_RDONLY);
  if (pipe < 0 || read(pipe, &byte, 1) != 0) abort();
  close(pipe);
  TF_SetStatus(status, TF_DATA_LOSS, "half of it is lost");
}

static void close_writer(const TF_WritableFile* file, TF_Status* status) {
  char path[4096];
  (void)status;
  snprintf(path, sizeof path, "%s.stored", (const char*)file->plugin_file);
  const int stored = open(path, O_WRONLY | O_CREAT, 0600);
  if (stored < 0) abort();
  close(stored);
}

static void clean_up(TF_WritableFile* file) { free(file->plugin_file); }

void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  TF_FilesystemOps filesystem = {.init = start_nothing, .cleanup = end_nothing, .new_writable_file = open_writer};
  TF_WritableFileOps writer = {.cleanup = clean_up, .append = append, .close = close_writer};
  offer(info, "tear", &filesystem, NULL, &writer, NULL);
}
