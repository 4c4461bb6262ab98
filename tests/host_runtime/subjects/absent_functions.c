/* What stands in the place of functions that the host does not offer, driven from C. */
#include "kernels/host_table.h"

#include <pthread.h>
#include <stdint.h>

#include "cases.h"
#include "log_capture.h"

typedef void* (*absent)(int, double, const char*, ...);
typedef struct {
  const char* data;
  size_t size;
} view;

static absent make(const char* name, const char* library) {
  return (absent)(uintptr_t)mtf_kernel_host_table.make_absent_function(name, library);
}

CASE(a_call_returns_0_and_is_logged_with_both_names) {
  capture_log();
  absent function = make("TF_Quux", "/plugins/libquux.so");
  CHECK(logged_lines == 0);
  CHECK(function(7, 1.5, "text", 8, 9, 10, 11, 12) == NULL);
  CHECK(logged_lines == 1);
  CHECK_TEXT("TF_Quux, which the host does not offer, was called by /plugins/libquux.so (KN-100)",
             last_logged);
  function(7, 1.5, "text");
  CHECK(logged_lines == 2);
}

CASE(the_line_is_one_of_the_code_that_called) {
  capture_log();
  absent function = make("TF_Quux", "/plugins/libquux.so");
  function(1, 2, "");
  const intptr_t distance = (intptr_t)last_caller - (intptr_t)entry_the_line_is_one_of_the_code_that_called.run;
  CHECK(distance > 0 && distance < 4096);
}

CASE(two_words_are_returned_as_0) {
  capture_log();
  view (*function)(void) = (view(*)(void))(uintptr_t)mtf_kernel_host_table.make_absent_function("TF_View", "lib.so");
  const view found = function();
  CHECK(found.data == NULL && found.size == 0);
}

CASE(names_are_copied) {
  capture_log();
  char name[] = "TF_Quux", library[] = "lib.so";
  absent function = make(name, library);
  memset(name, 'x', sizeof(name) - 1);
  memset(library, 'x', sizeof(library) - 1);
  function(1, 2, "");
  CHECK_TEXT("TF_Quux, which the host does not offer, was called by lib.so (KN-100)", last_logged);
}

CASE(each_name_of_each_library_has_one_function) {
  absent function = make("TF_Quux", "liba.so");
  CHECK(make("TF_Quux", "liba.so") == function);
  CHECK(make("TF_Quux", "libb.so") != function);
  CHECK(make("TF_Quuz", "liba.so") != function);
}

CASE(when_all_are_used_the_rest_share_one_that_says_so) {
  capture_log();
  char name[32];
  absent first = make("TF_Name0", "lib.so"), last = NULL;
  for (int i = 1; i < MTF_ABSENT_FUNCTIONS_MOST; ++i) {
    snprintf(name, sizeof(name), "TF_Name%d", i);
    last = make(name, "lib.so");
  }
  last(1, 2, "");
  CHECK(strstr(last_logged, name) == last_logged);
  absent shared = make("TF_Further", "lib.so");
  CHECK(shared != last && shared == make("TF_Another", "lib.so"));
  CHECK(shared(1, 2, "") == NULL);
  CHECK_TEXT(
      "a function that the host does not offer was called; there are more of them than it can name "
      "(KN-100)",
      last_logged);
  CHECK(make("TF_Name0", "lib.so") == first);
}

CASE(a_name_of_any_length_is_told) {
  capture_log();
  char name[5000];
  memset(name, 'n', sizeof(name) - 1);
  name[sizeof(name) - 1] = '\0';
  make(name, "lib.so")(1, 2, "");
  CHECK(strlen(last_logged) == sizeof(last_logged) - 1);
}

static void* make_all(void* functions) {
  char name[32];
  for (int i = 0; i < 500; ++i) {
    snprintf(name, sizeof(name), "TF_Name%d", i);
    ((absent*)functions)[i] = make(name, "lib.so");
  }
  return NULL;
}

CASE(threads_get_the_same_functions) {
  static absent functions[4][500];
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) {
    CHECK(pthread_create(&threads[i], NULL, make_all, functions[i]) == 0);
  }
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  for (int i = 1; i < 4; ++i) CHECK(memcmp(functions[0], functions[i], sizeof(functions[0])) == 0);
}
