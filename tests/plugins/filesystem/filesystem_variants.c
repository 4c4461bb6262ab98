/* Variants whose answers about paths, and whose statuses, are wrong. */
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "good_filesystem.h"
#include "ledger.h"
#include "plan.h"

#define CHANGE(function, statement) \
  static void function(registration_plan* plan) { plan->schemes[0].filesystem.statement; }

/* ---- Statuses: path_exists shows them ---- */

#define EXISTS_AS(function, code, message)                                                \
  static void function(const TF_Filesystem* filesystem, const char* path, TF_Status* status) { \
    (void)filesystem, (void)path;                                                         \
    TF_SetStatus(status, (TF_Code)(code), message);                                       \
  }                                                                                       \
  CHANGE(plan_##function, path_exists = function)

EXISTS_AS(exists_code_99, 99, "a code that nobody knows")
EXISTS_AS(exists_code_minus_one, -1, "a negative code")
EXISTS_AS(exists_null_message, TF_NOT_FOUND, NULL)
EXISTS_AS(exists_bytes, TF_NOT_FOUND, "not \xff UTF-8")
EXISTS_AS(exists_denied, TF_PERMISSION_DENIED, "no")

static void exists_own_message(const TF_Filesystem* filesystem, const char* path,
                               TF_Status* status) {
  (void)filesystem, (void)path;
  TF_SetStatus(status, TF_ABORTED, "said twice");
  TF_SetStatus(status, TF_NOT_FOUND, TF_Message(status));
}
CHANGE(plan_exists_own_message, path_exists = exists_own_message)

static void exists_untouched(const TF_Filesystem* filesystem, const char* path,
                             TF_Status* status) {
  (void)filesystem, (void)path, (void)status;
}

static void create_dir_untouched(const TF_Filesystem* filesystem, const char* path,
                                 TF_Status* status) {
  (void)status;
  TF_Status* own = TF_NewStatus();
  good_filesystem_ops.create_dir(filesystem, path, own);
  TF_DeleteStatus(own);
}

static void status_untouched(registration_plan* plan) {
  plan->schemes[0].filesystem.path_exists = exists_untouched;
  plan->schemes[0].filesystem.create_dir = create_dir_untouched;
}

/* ---- paths_exist: wrong about the whole, or silent about the parts ---- */

static bool all_exist_lies(const TF_Filesystem* filesystem, char** paths, int count,
                           TF_Status** statuses) {
  return !good_filesystem_ops.paths_exist(filesystem, paths, count, statuses);
}
CHANGE(paths_exist_lies, paths_exist = all_exist_lies)

static bool all_exist_silent(const TF_Filesystem* filesystem, char** paths, int count,
                             TF_Status** statuses) {
  (void)statuses;
  return good_filesystem_ops.paths_exist(filesystem, paths, count, NULL);
}
CHANGE(paths_exist_silent, paths_exist = all_exist_silent)

/* ---- Sizes and kinds ---- */

static void stat_nothing(const TF_Filesystem* filesystem, const char* path,
                         TF_FileStatistics* stats, TF_Status* status) {
  (void)filesystem, (void)path, (void)stats;
  TF_SetStatus(status, TF_OK, "");
}
CHANGE(stat_untouched, stat = stat_nothing)

static void stat_below_zero(const TF_Filesystem* filesystem, const char* path,
                            TF_FileStatistics* stats, TF_Status* status) {
  good_filesystem_ops.stat(filesystem, path, stats, status);
  stats->length = -5;
}
CHANGE(stat_negative, stat = stat_below_zero)

static int64_t size_below_zero(const TF_Filesystem* filesystem, const char* path,
                               TF_Status* status) {
  (void)filesystem, (void)path;
  TF_SetStatus(status, TF_OK, "");
  return -1;
}
CHANGE(size_minus_one, get_file_size = size_below_zero)

/* As S3 and others do: OK and false for a file. */
static bool directory_by_value(const TF_Filesystem* filesystem, const char* path,
                               TF_Status* status) {
  bool result = good_filesystem_ops.is_directory(filesystem, path, status);
  if (TF_GetCode(status) == TF_FAILED_PRECONDITION) TF_SetStatus(status, TF_OK, "");
  return result;
}
CHANGE(directory_ok_false, is_directory = directory_by_value)

/* ---- delete_recursively ---- */

static void delete_without_counts(const TF_Filesystem* filesystem, const char* path,
                                  uint64_t* files, uint64_t* dirs, TF_Status* status) {
  (void)files, (void)dirs;
  uint64_t own_files, own_dirs;
  good_filesystem_ops.delete_recursively(filesystem, path, &own_files, &own_dirs, status);
}
CHANGE(delete_untouched, delete_recursively = delete_without_counts)

static void delete_some(const TF_Filesystem* filesystem, const char* path, uint64_t* files,
                        uint64_t* dirs, TF_Status* status) {
  (void)filesystem, (void)path;
  *files = 2;
  *dirs = 1;
  TF_SetStatus(status, TF_OK, "");
}
CHANGE(delete_leaves_some, delete_recursively = delete_some)

/* ---- translate_name ---- */

static char* translate_to_null(const TF_Filesystem* filesystem, const char* uri) {
  (void)filesystem, (void)uri;
  return NULL;
}
CHANGE(translate_null, translate_name = translate_to_null)

static char* translate_to_nothing(const TF_Filesystem* filesystem, const char* uri) {
  (void)filesystem, (void)uri;
  return ledger_string("");
}
CHANGE(translate_empty, translate_name = translate_to_nothing)

/* ---- An operation that ends the process ---- */

static void abort_instead(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem, (void)path, (void)status;
  abort();
}
CHANGE(exists_aborts, path_exists = abort_instead)

const variant filesystem_variants[] = {
    {"code-99", plan_exists_code_99},
    {"code-minus-one", plan_exists_code_minus_one},
    {"message-null", plan_exists_null_message},
    {"message-not-utf8", plan_exists_bytes},
    {"message-aliased", plan_exists_own_message},
    {"exists-denied", plan_exists_denied},
    {"exists-aborts", exists_aborts},
    {"status-untouched", status_untouched},
    {"paths-exist-lies", paths_exist_lies},
    {"paths-exist-silent", paths_exist_silent},
    {"stat-untouched", stat_untouched},
    {"stat-negative", stat_negative},
    {"size-minus-one", size_minus_one},
    {"directory-ok-false", directory_ok_false},
    {"delete-recursively-untouched", delete_untouched},
    {"delete-recursively-leaves-some", delete_leaves_some},
    {"translate-null", translate_null},
    {"translate-empty", translate_empty},
    {NULL, NULL},
};
