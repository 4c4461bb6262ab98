/* A filesystem plugin that keeps a pointer to data of the thread that initialises it. The destructor
 * of that data marks it; with AT_THREAD_END it does a misdeed instead. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "modular_tf/filesystem.h"

static pthread_key_t key;
static int *state;

static void destroy(void *data) {
#ifdef AT_THREAD_END
  (void)data;
  AT_THREAD_END;
#else
  *(int *)data = -1;
#endif
}

static void init(TF_Filesystem *filesystem, TF_Status *status) {
  (void)filesystem;
  (void)status;
  if (pthread_key_create(&key, destroy) != 0) abort();
  state = malloc(sizeof *state);
  *state = 1;
  pthread_setspecific(key, state);
}

static void cleanup(TF_Filesystem *filesystem) {
  (void)filesystem;
  if (*state != 1) abort();
}

__attribute__((visibility("default"))) void TF_InitPlugin(TF_FilesystemPluginInfo *info) {
  info->plugin_memory_allocate = malloc;
  info->plugin_memory_free = free;
  info->num_schemes = 1;
  info->ops = calloc(1, sizeof *info->ops);
  TF_SetFilesystemVersionMetadata(info->ops);
  info->ops->scheme = strdup("threaddata");
  info->ops->filesystem_ops = calloc(1, TF_FILESYSTEM_OPS_SIZE);
  info->ops->filesystem_ops->init = init;
  info->ops->filesystem_ops->cleanup = cleanup;
}
