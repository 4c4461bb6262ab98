/* Variants that differ in TF_FilesystemPluginInfo, in the schemes, or in `init`. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "files.h"
#include "good_filesystem.h"
#include "ledger.h"
#include "plan.h"

#define CHANGE(function, statement) \
  static void function(registration_plan* plan) { statement; }

CHANGE(without_allocator, plan->allocate = NULL)
CHANGE(without_free, plan->free = NULL)
CHANGE(without_schemes, plan->num_schemes = 0)
CHANGE(without_ops, plan->without_ops = true)
CHANGE(null_scheme, plan->schemes[0].scheme = NULL)
CHANGE(one_scheme_twice, plan->num_schemes = 2)

static void two_schemes(registration_plan* plan) {
  plan->num_schemes = 2;
  plan->schemes[1].scheme = "fixture2";
}

static void second_scheme_without_cleanup(registration_plan* plan) {
  two_schemes(plan);
  plan->schemes[1].filesystem.cleanup = NULL;
}

static void first_scheme_without_cleanup(registration_plan* plan) {
  two_schemes(plan);
  plan->schemes[0].filesystem.cleanup = NULL;
}

static void failing_init(TF_Filesystem* filesystem, TF_Status* status) {
  (void)filesystem;
  ledger_add(&fixture_ledger.inits, 1);
  TF_SetStatus(status, TF_UNAVAILABLE, "the store is down");
}
CHANGE(init_fails, plan->schemes[0].filesystem.init = failing_init)

/* A host that passes a status which is not OK, or not NULL-safe, is seen at once. */
static void silent_init(TF_Filesystem* filesystem, TF_Status* status) {
  TF_Code before = TF_GetCode(status);
  good_filesystem_ops.init(filesystem, status);
  if (before != TF_OK) TF_SetStatus(status, TF_INTERNAL, "the status did not arrive as OK");
}
CHANGE(init_checks_its_status, plan->schemes[0].filesystem.init = silent_init)

static void untouching_init(TF_Filesystem* filesystem, TF_Status* status) {
  (void)status;
  TF_Status* own = TF_NewStatus();
  good_filesystem_ops.init(filesystem, own);
  TF_DeleteStatus(own);
}
CHANGE(init_status_untouched, plan->schemes[0].filesystem.init = untouching_init)

/* The table that was registered, kept and changed against the rules. */
static TF_FilesystemOps* registered;

static void keep_table(const TF_FilesystemPluginInfo* info) {
  registered = info->ops[0].filesystem_ops;
}

static void free_nothing(void* block) { (void)block; }

static void empty_table(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  memset(registered, 0, sizeof(*registered));
  good_filesystem_ops.path_exists(filesystem, path, status);
}

/* path_exists zeroes the plugin's own table; the host must not have relied on it. */
static void table_changes_later(registration_plan* plan) {
  plan->registered = keep_table;
  plan->free = free_nothing;
  plan->schemes[0].filesystem.path_exists = empty_table;
}

const variant registration_variants[] = {
    {"allocator-null", without_allocator},
    {"free-null", without_free},
    {"schemes-none", without_schemes},
    {"ops-null", without_ops},
    {"scheme-null", null_scheme},
    {"scheme-twice", one_scheme_twice},
    {"two-schemes", two_schemes},
    {"two-schemes-second-bad", second_scheme_without_cleanup},
    {"two-schemes-first-bad", first_scheme_without_cleanup},
    {"init-fails", init_fails},
    {"init-checks-its-status", init_checks_its_status},
    {"init-status-untouched", init_status_untouched},
    {"table-changes-later", table_changes_later},
    {NULL, NULL},
};
