#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "good_filesystem.h"
#include "ledger.h"

static const variant* const all_variants[] = {
    registration_variants, table_variants, file_variants, filesystem_variants, listing_variants,
};

static void plan_scheme(scheme_plan* plan, const char* scheme) {
  plan->scheme = scheme;
  plan->filesystem = good_filesystem_ops;
  plan->random_access_file = good_random_access_file_ops;
  plan->writable_file = good_writable_file_ops;
  plan->read_only_memory_region = good_read_only_memory_region_ops;
  TF_SetFilesystemVersionMetadata(&plan->entry);
  plan->entry.filesystem_ops = &plan->filesystem;
  plan->entry.random_access_file_ops = &plan->random_access_file;
  plan->entry.writable_file_ops = &plan->writable_file;
  plan->entry.read_only_memory_region_ops = &plan->read_only_memory_region;
}

static const variant* find_variant(const char* name) {
  for (size_t i = 0; i < sizeof(all_variants) / sizeof(all_variants[0]); ++i)
    for (const variant* found = all_variants[i]; found->name != NULL; ++found)
      if (strcmp(found->name, name) == 0) return found;
  fprintf(stderr, "there is no fixture variant named %s\n", name);
  abort();
}

/* Where a host gets to that calls what lies behind the end of a table. */
static void behind_the_end(void) {
  fputs("the host called a slot that lies behind the end of the plugin's table\n", stderr);
  abort();
}

/* Copies a table to memory for the host. What a host reads behind the announced size is a trap. */
static void* hand_over(const void* table, size_t real, size_t announced) {
  if (table == NULL) return NULL;
  void (*trap)(void) = behind_the_end;
  size_t room = (real > announced ? real : announced) + sizeof(trap);
  char* copy = ledger_allocate(room);
  if (copy == NULL) abort();
  for (size_t i = 0; i + sizeof(trap) <= room; i += sizeof(trap))
    memcpy(copy + i, &trap, sizeof(trap));
  return memcpy(copy, table, announced > 0 && announced < real ? announced : real);
}

static TF_FilesystemPluginOps hand_over_scheme(const scheme_plan* plan) {
  TF_FilesystemPluginOps ops = plan->entry;
  ops.scheme = plan->scheme == NULL ? NULL : ledger_string(plan->scheme);
  ops.filesystem_ops =
      hand_over(ops.filesystem_ops, sizeof(plan->filesystem), ops.filesystem_ops_size);
  ops.random_access_file_ops = hand_over(
      ops.random_access_file_ops, sizeof(plan->random_access_file), ops.random_access_file_ops_size);
  ops.writable_file_ops =
      hand_over(ops.writable_file_ops, sizeof(plan->writable_file), ops.writable_file_ops_size);
  ops.read_only_memory_region_ops =
      hand_over(ops.read_only_memory_region_ops, sizeof(plan->read_only_memory_region),
                ops.read_only_memory_region_ops_size);
  return ops;
}

static void hand_over_plan(const registration_plan* plan, TF_FilesystemPluginInfo* info) {
  info->num_schemes = plan->num_schemes;
  info->plugin_memory_allocate = plan->allocate;
  info->plugin_memory_free = plan->free;
  if (plan->without_ops || plan->num_schemes == 0) return;
  info->ops = ledger_allocate(plan->num_schemes * sizeof(TF_FilesystemPluginOps));
  for (size_t i = 0; i < plan->num_schemes; ++i)
    info->ops[i] = hand_over_scheme(&plan->schemes[i]);
}

void register_fixture(TF_FilesystemPluginInfo* info, const char* name, const char* scheme) {
  registration_plan plan = {.num_schemes = 1, .allocate = ledger_allocate, .free = ledger_free};
  for (int i = 0; i < PLAN_MAX_SCHEMES; ++i) plan_scheme(&plan.schemes[i], scheme);
  if (strcmp(name, "good") != 0) find_variant(name)->apply(&plan);
  hand_over_plan(&plan, info);
  if (plan.registered != NULL) plan.registered(info);
}
