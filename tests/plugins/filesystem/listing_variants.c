/* Variants whose get_children, or get_matching_paths, returns what a host must not trust. */
#include <stddef.h>

#include "good_filesystem.h"
#include "ledger.h"
#include "plan.h"
#include "string_list.h"

#define CHILDREN_AS(function)                                                              \
  static void plan_##function(registration_plan* plan) {                                   \
    plan->schemes[0].filesystem.get_children = function;                                   \
  }

#define LIST_AS(function, statements)                                                      \
  static int function(const TF_Filesystem* filesystem, const char* path, char*** entries,  \
                      TF_Status* status) {                                                 \
    (void)filesystem, (void)path, (void)entries;                                           \
    TF_SetStatus(status, TF_OK, "");                                                       \
    statements                                                                             \
  }                                                                                        \
  CHILDREN_AS(function)

LIST_AS(minus_one, return -1;)
LIST_AS(null_array, return 2;)
LIST_AS(zero_and_null, return 0;)

LIST_AS(null_entry, {
  string_list list = {0};
  string_list_add(&list, "first");
  string_list_add(&list, "second");
  ledger_free(list.items[1]);
  list.items[1] = NULL;
  *entries = list.items;
  return list.count;
})

LIST_AS(error_and_entries, {
  string_list list = {0};
  string_list_add(&list, "partial");
  *entries = list.items;
  TF_SetStatus(status, TF_UNAVAILABLE, "only the first page came");
  return list.count;
})

/* A well-behaved name beside one that no host should hand on. */
static int beside_good(const char* name, char*** entries) {
  string_list list = {0};
  string_list_add(&list, "good");
  string_list_add(&list, name);
  *entries = list.items;
  return list.count;
}

#define LIST_NAME(function, name) LIST_AS(function, return beside_good(name, entries);)

LIST_NAME(empty_name, "")
LIST_NAME(dot, ".")
LIST_NAME(dot_dot, "..")
LIST_NAME(slash_inside, "a/b")
LIST_NAME(slash, "/")
LIST_NAME(absolute, "/etc")
LIST_NAME(trailing_slash, "folder/")
LIST_NAME(not_utf8, "\xff\xfe")
LIST_NAME(good_twice, "good")

/* In throw.cc, which only the variant that throws is linked with. */
extern void fixture_throw(const char* what) __attribute__((weak, visibility("hidden")));

LIST_AS(throws, {
  if (fixture_throw != NULL) fixture_throw("thrown by get_children");
  return 0;
})

static int matching_null_entry(const TF_Filesystem* filesystem, const char* glob, char*** entries,
                               TF_Status* status) {
  return null_entry(filesystem, glob, entries, status);
}

static void plan_matching_null_entry(registration_plan* plan) {
  plan->schemes[0].filesystem.get_matching_paths = matching_null_entry;
}

const variant listing_variants[] = {
    {"children-minus-one", plan_minus_one},
    {"children-array-null", plan_null_array},
    {"children-none-array-null", plan_zero_and_null},
    {"children-entry-null", plan_null_entry},
    {"children-error-with-entries", plan_error_and_entries},
    {"children-name-empty", plan_empty_name},
    {"children-name-dot", plan_dot},
    {"children-name-dot-dot", plan_dot_dot},
    {"children-name-with-slash", plan_slash_inside},
    {"children-name-slash", plan_slash},
    {"children-name-absolute", plan_absolute},
    {"children-name-trailing-slash", plan_trailing_slash},
    {"children-name-not-utf8", plan_not_utf8},
    {"children-name-twice", plan_good_twice},
    {"children-throws", plan_throws},
    {"matching-entry-null", plan_matching_null_entry},
    {NULL, NULL},
};
