/* A filesystem plugin, scheme `options`, that knows the blocks of its allocator. Setting an option
 * fails where any part of it lies elsewhere. The option "spare" says how many more blocks there are.
 * The size of a path is how many blocks are live, of one with "flushes" in it how often files were
 * flushed; asking for that of "refill" gives the blocks back. Files have no sync, and transactions no decode_transaction_token. */
#include <stdlib.h>
#include <string.h>

#include "modular_tf/filesystem.h"

enum { MOST_BLOCKS = 4096 };

static void* live[MOST_BLOCKS];
static int64_t spare = MOST_BLOCKS, flushes;
static TF_TransactionToken token = {.token = (void*)0xabc, .owner = NULL};

static void** place_of(const void* block) {
  for (int i = 0; i < MOST_BLOCKS; ++i) {
    if (live[i] == block) return &live[i];
  }
  return NULL;
}

static void* allocate(size_t size) {
  if (spare == 0) return NULL;
  --spare;
  void* block = malloc(size);
  *place_of(NULL) = block;
  return block;
}

static void release(void* block) {
  if (block == NULL) return;
  void** place = place_of(block);
  if (place == NULL) abort();
  *place = NULL;
  free(block);
}

static int is_block(const void* block) { return block != NULL && place_of(block) != NULL; }

static const char* foreign_part(const TF_Filesystem_Option* option) {
  if (!is_block(option->name)) return "name";
  if (!is_block(option->description)) return "description";
  if (!is_block(option->value)) return "value";
  if (!is_block(option->value->values)) return "values";
  for (int i = 0; i < option->value->num_values; ++i) {
    if (option->value->type_tag != TF_Filesystem_Option_Type_Buffer) break;
    if (!is_block(option->value->values[i].buffer_val.buf)) return "buf";
  }
  return NULL;
}

static void set_option(const TF_Filesystem* filesystem, const TF_Filesystem_Option* option,
                       TF_Status* status) {
  (void)filesystem;
  const char* foreign = foreign_part(option);
  if (foreign != NULL) TF_SetStatus(status, TF_FAILED_PRECONDITION, foreign);
  if (foreign == NULL && strcmp(option->name, "spare") == 0) {
    spare = option->value->values[0].int_val;
  }
}

static void set_all(const TF_Filesystem* filesystem, const TF_Filesystem_Option* options, int count,
                    TF_Status* status) {
  if (!is_block(options)) TF_SetStatus(status, TF_FAILED_PRECONDITION, "array");
  for (int i = 0; i < count && TF_GetCode(status) == TF_OK; ++i) {
    set_option(filesystem, &options[i], status);
  }
}

static int64_t live_blocks(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem, (void)status;
  if (strstr(path, "flushes") != NULL) return flushes;
  if (strstr(path, "refill") != NULL) spare = MOST_BLOCKS;
  int64_t count = 0;
  for (int i = 0; i < MOST_BLOCKS; ++i) count += live[i] != NULL;
  return count;
}

static int start_transaction(const TF_Filesystem* filesystem, TF_TransactionToken** made,
                             TF_Status* status) {
  (void)status;
  token.owner = (TF_Filesystem*)filesystem;
  *made = &token;
  return 0;
}

static void open_file(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file,
                      TF_Status* status) {
  (void)filesystem, (void)path, (void)file, (void)status;
}
static void count_flush(const TF_WritableFile* file, TF_Status* status) {
  (void)file, (void)status;
  ++flushes;
}
static void close_file(const TF_WritableFile* file, TF_Status* status) { (void)file, (void)status; }
static void clean_up_file(TF_WritableFile* file) { (void)file; }

static void start(TF_Filesystem* filesystem, TF_Status* status) { (void)filesystem, (void)status; }
static void clean_up(TF_Filesystem* filesystem) { (void)filesystem; }

void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  const TF_FilesystemOps filesystem = {
      .init = start,
      .cleanup = clean_up,
      .new_writable_file = open_file,
      .get_file_size = live_blocks,
      .start_transaction = start_transaction,
      .set_filesystem_configuration = set_all,
      .set_filesystem_configuration_option = set_option,
  };
  const TF_WritableFileOps file = {
      .cleanup = clean_up_file, .flush = count_flush, .close = close_file};
  info->plugin_memory_allocate = allocate;
  info->plugin_memory_free = release;
  info->num_schemes = 1;
  info->ops = memset(allocate(sizeof(TF_FilesystemPluginOps)), 0, sizeof(TF_FilesystemPluginOps));
  TF_SetFilesystemVersionMetadata(info->ops);
  info->ops->scheme = memcpy(allocate(8), "options", 8);
  info->ops->filesystem_ops = memcpy(allocate(sizeof filesystem), &filesystem, sizeof filesystem);
  info->ops->writable_file_ops = memcpy(allocate(sizeof file), &file, sizeof file);
}
