/* A filesystem plugin whose registration is odd in one way, chosen by a macro ODD_*.
 *
 * What it hands over comes from malloc and goes to free, as in most plugins: a host that frees
 * what was never allocated ends the process. */
#include <stdlib.h>
#include <string.h>

#include "modular_tf/filesystem.h"

#ifndef SCHEME
#define SCHEME "odd"
#endif

static void* allocate(size_t size) { return calloc(1, size); }

static void start(TF_Filesystem* filesystem, TF_Status* status) { (void)filesystem, (void)status; }
static void end(TF_Filesystem* filesystem) { (void)filesystem; }

static void* heap(const void* bytes, size_t size) { return memcpy(allocate(size), bytes, size); }

static const TF_FilesystemOps good = {.init = start, .cleanup = end};

static TF_FilesystemPluginOps entry(const char* scheme) {
  TF_FilesystemPluginOps ops = {0};
  TF_SetFilesystemVersionMetadata(&ops);
  ops.scheme = heap(scheme, strlen(scheme) + 1);
  ops.filesystem_ops = heap(&good, sizeof(good));
  return ops;
}

void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  info->plugin_memory_allocate = allocate;
  info->plugin_memory_free = free;
  info->num_schemes = 2;
  info->ops = allocate(2 * sizeof(TF_FilesystemPluginOps));
  info->ops[0] = entry(SCHEME);
  info->ops[1] = entry(SCHEME "2");
  TF_FilesystemPluginOps* first = &info->ops[0];
  (void)first;
#if defined(ODD_ABSURD_COUNT)
  info->num_schemes = (size_t)-1;
#elif defined(ODD_OPS_NOT_MAPPED)
  free(first->scheme);
  free(info->ops);
  info->ops = (void*)0x10;
#elif defined(ODD_TABLE_NOT_MAPPED)
  free(first->filesystem_ops);
  first->filesystem_ops = (void*)0x10;
#elif defined(ODD_SCHEME_NOT_MAPPED)
  free(first->scheme);
  first->scheme = (char*)0x10;
#elif defined(ODD_STATIC_MEMORY)
  static TF_FilesystemOps ours;
  ours = good;
  free(first->scheme);
  free(first->filesystem_ops);
  first->scheme = "odd";
  first->filesystem_ops = &ours;
#elif defined(ODD_SHARED_TABLE)
  free(info->ops[1].filesystem_ops);
  info->ops[1].filesystem_ops = first->filesystem_ops;
#elif defined(ODD_FREE_NOT_CODE)
  static char data[16];
  memcpy(&info->plugin_memory_free, &(void*){data}, sizeof(void*));
#endif
}
