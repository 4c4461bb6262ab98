/* Variants that differ in the sizes, versions and slots of the four tables. */
#include <stddef.h>
#include <string.h>

#include "plan.h"

#define CHANGE(function, statement)                 \
  static void function(registration_plan* plan) {   \
    scheme_plan* only = &plan->schemes[0];          \
    statement;                                      \
  }

/* ---- Sizes and layouts ---- */

CHANGE(no_filesystem_table, only->entry.filesystem_ops = NULL)
CHANGE(filesystem_size_0, only->entry.filesystem_ops_size = 0)
CHANGE(filesystem_size_8, only->entry.filesystem_ops_size = 8)
CHANGE(filesystem_size_106, only->entry.filesystem_ops_size = 106)
CHANGE(filesystem_size_176, only->entry.filesystem_ops_size = 176)
CHANGE(filesystem_size_224, only->entry.filesystem_ops_size = 224)
CHANGE(filesystem_size_263, only->entry.filesystem_ops_size = 263)
CHANGE(filesystem_size_280, only->entry.filesystem_ops_size = 280)
CHANGE(random_access_size_0, only->entry.random_access_file_ops_size = 0)
CHANGE(random_access_size_12, only->entry.random_access_file_ops_size = 12)
CHANGE(random_access_size_24, only->entry.random_access_file_ops_size = 24)
CHANGE(writable_size_0, only->entry.writable_file_ops_size = 0)
CHANGE(writable_size_20, only->entry.writable_file_ops_size = 20)
CHANGE(writable_size_56, only->entry.writable_file_ops_size = 56)
CHANGE(region_size_0, only->entry.read_only_memory_region_ops_size = 0)
CHANGE(region_size_16, only->entry.read_only_memory_region_ops_size = 16)

/* The layout of TensorFlow 2.22: the configuration slots follow flush_caches. */
static void layout_of_2_22(registration_plan* plan) {
  char* table = (char*)&plan->schemes[0].filesystem;
  size_t transactions = offsetof(TF_FilesystemOps_V221, start_transaction);
  size_t configuration = offsetof(TF_FilesystemOps_V221, get_filesystem_configuration);
  size_t moved = sizeof(TF_FilesystemOps_V221) - configuration;
  memmove(table + transactions, table + configuration, moved);
  plan->schemes[0].entry.filesystem_ops_size = sizeof(TF_FilesystemOps_V222);
}

/* ---- Versions ---- */

CHANGE(filesystem_abi, only->entry.filesystem_ops_abi = 1)
CHANGE(random_access_abi, only->entry.random_access_file_ops_abi = 1)
CHANGE(writable_abi, only->entry.writable_file_ops_abi = 1)
CHANGE(region_abi, only->entry.read_only_memory_region_ops_abi = 1)
CHANGE(filesystem_api, only->entry.filesystem_ops_api = 7)
CHANGE(random_access_api, only->entry.random_access_file_ops_api = 7)
CHANGE(writable_api, only->entry.writable_file_ops_api = 7)
CHANGE(region_api, only->entry.read_only_memory_region_ops_api = 7)

/* ---- Required slots ---- */

CHANGE(no_init, only->filesystem.init = NULL)
CHANGE(no_cleanup, only->filesystem.cleanup = NULL)
CHANGE(no_random_access_cleanup, only->random_access_file.cleanup = NULL)
CHANGE(no_writable_cleanup, only->writable_file.cleanup = NULL)
CHANGE(no_region_cleanup, only->read_only_memory_region.cleanup = NULL)
CHANGE(no_region_data, only->read_only_memory_region.data = NULL)
CHANGE(no_region_length, only->read_only_memory_region.length = NULL)

static void bad_slot(registration_plan* plan) {
  static int not_code;
  void* address = &not_code;
  memcpy(&plan->schemes[0].filesystem.stat, &address, sizeof(address));
}

/* ---- Openers without the table of their files ---- */

CHANGE(reader_without_table, only->entry.random_access_file_ops = NULL)
CHANGE(region_without_table, only->entry.read_only_memory_region_ops = NULL)

static void writer_without_table(registration_plan* plan) {
  plan->schemes[0].entry.writable_file_ops = NULL;
  plan->schemes[0].filesystem.new_appendable_file = NULL;
}

static void appender_without_table(registration_plan* plan) {
  plan->schemes[0].entry.writable_file_ops = NULL;
  plan->schemes[0].filesystem.new_writable_file = NULL;
}

/* ---- Legal, and rarely seen ---- */

/* Only what has no default: everything else is up to the host. */
static void minimal(registration_plan* plan) {
  TF_FilesystemOps all = plan->schemes[0].filesystem;
  plan->schemes[0].filesystem = (TF_FilesystemOps){
      .init = all.init,
      .cleanup = all.cleanup,
      .new_random_access_file = all.new_random_access_file,
      .new_writable_file = all.new_writable_file,
      .create_dir = all.create_dir,
      .delete_file = all.delete_file,
      .delete_dir = all.delete_dir,
      .path_exists = all.path_exists,
      .stat = all.stat,
      .get_children = all.get_children,
  };
  plan->schemes[0].entry.read_only_memory_region_ops = NULL;
  plan->schemes[0].writable_file.flush = NULL;
  plan->schemes[0].writable_file.sync = NULL;
}

static void nothing_but_init(registration_plan* plan) {
  TF_FilesystemOps all = plan->schemes[0].filesystem;
  plan->schemes[0].filesystem = (TF_FilesystemOps){.init = all.init, .cleanup = all.cleanup};
  plan->schemes[0].entry.random_access_file_ops = NULL;
  plan->schemes[0].entry.writable_file_ops = NULL;
  plan->schemes[0].entry.read_only_memory_region_ops = NULL;
  plan->schemes[0].entry.random_access_file_ops_abi = 9; /* of a table that is not there */
}

static void no_optional_file_slots(registration_plan* plan) {
  plan->schemes[0].random_access_file.read = NULL;
  plan->schemes[0].writable_file =
      (TF_WritableFileOps){.cleanup = plan->schemes[0].writable_file.cleanup};
}

const variant table_variants[] = {
    {"filesystem-table-null", no_filesystem_table},
    {"filesystem-size-0", filesystem_size_0},
    {"filesystem-size-8", filesystem_size_8},
    {"filesystem-size-106", filesystem_size_106},
    {"filesystem-size-176", filesystem_size_176},
    {"filesystem-size-216", layout_of_2_22},
    {"filesystem-size-224", filesystem_size_224},
    {"filesystem-size-263", filesystem_size_263},
    {"filesystem-size-280", filesystem_size_280},
    {"random-access-size-0", random_access_size_0},
    {"random-access-size-12", random_access_size_12},
    {"random-access-size-24", random_access_size_24},
    {"writable-size-0", writable_size_0},
    {"writable-size-20", writable_size_20},
    {"writable-size-56", writable_size_56},
    {"region-size-0", region_size_0},
    {"region-size-16", region_size_16},
    {"filesystem-abi", filesystem_abi},
    {"random-access-abi", random_access_abi},
    {"writable-abi", writable_abi},
    {"region-abi", region_abi},
    {"filesystem-api", filesystem_api},
    {"random-access-api", random_access_api},
    {"writable-api", writable_api},
    {"region-api", region_api},
    {"init-null", no_init},
    {"cleanup-null", no_cleanup},
    {"random-access-cleanup-null", no_random_access_cleanup},
    {"writable-cleanup-null", no_writable_cleanup},
    {"region-cleanup-null", no_region_cleanup},
    {"region-data-null", no_region_data},
    {"region-length-null", no_region_length},
    {"slot-not-code", bad_slot},
    {"reader-without-table", reader_without_table},
    {"writer-without-table", writer_without_table},
    {"appender-without-table", appender_without_table},
    {"region-without-table", region_without_table},
    {"minimal", minimal},
    {"nothing-but-init", nothing_but_init},
    {"file-slots-null", no_optional_file_slots},
    {NULL, NULL},
};
