/* Temporary paths of env.h, driven from C in an empty working directory. */
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cases.h"
#include "modular_tf/env.h"

static const char* here(void) {
  static char path[2048];
  CHECK(getcwd(path, sizeof(path)) != NULL);
  return path;
}

static void set_directories(const char* test_tmpdir, const char* tmpdir, const char* tmp) {
  test_tmpdir == NULL ? unsetenv("TEST_TMPDIR") : setenv("TEST_TMPDIR", test_tmpdir, 1);
  tmpdir == NULL ? unsetenv("TMPDIR") : setenv("TMPDIR", tmpdir, 1);
  tmp == NULL ? unsetenv("TMP") : setenv("TMP", tmp, 1);
}

static void check_only_directory(const char* expected) {
  const char* found = NULL;
  TF_StringStream* directories = TF_GetLocalTempDirectories();
  CHECK(TF_StringStreamNext(directories, &found));
  CHECK_TEXT(expected, found);
  CHECK(!TF_StringStreamNext(directories, &found));
  TF_StringStreamDone(directories);
}

CASE(the_first_directory_that_exists_is_the_place) {
  char expected[2100];
  snprintf(expected, sizeof(expected), "%s/", here());
  set_directories(NULL, NULL, NULL);
  check_only_directory("/tmp/");
  set_directories(NULL, NULL, here());
  check_only_directory(expected);
  set_directories(NULL, here(), "/tmp");
  check_only_directory(expected);
  set_directories(here(), "/tmp", "/tmp");
  check_only_directory(expected);
  set_directories("", "/nonexistent", expected);
  check_only_directory(expected);
}

CASE(a_temporary_name_belongs_to_a_new_private_file) {
  struct stat found;
  set_directories(NULL, here(), NULL);
  char* path = TF_GetTempFileName("txt");
  CHECK(strncmp(path, here(), strlen(here())) == 0);
  CHECK(path[strlen(here())] == '/');
  CHECK_TEXT(".txt", path + strlen(path) - 4);
  CHECK(stat(path, &found) == 0);
  CHECK(found.st_size == 0 && (found.st_mode & 0777) == 0600);
  free(path);
  path = TF_GetTempFileName("");
  CHECK(strchr(path + strlen(here()), '.') == NULL);
  CHECK(access(path, F_OK) == 0);
  free(path);
}

enum { kThreads = 8, kNames = 50 };
static char* names[kThreads * kNames];

static void* collect(void* first) {
  char** mine = first;
  for (int i = 0; i < kNames; ++i) mine[i] = TF_GetTempFileName("t");
  return NULL;
}

static int by_text(const void* a, const void* b) {
  return strcmp(*(char* const*)a, *(char* const*)b);
}

CASE(temporary_names_differ_across_threads) {
  pthread_t threads[kThreads];
  set_directories(NULL, here(), NULL);
  for (int i = 0; i < kThreads; ++i) {
    CHECK(pthread_create(&threads[i], NULL, collect, names + i * kNames) == 0);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  qsort(names, kThreads * kNames, sizeof(char*), by_text);
  for (int i = 1; i < kThreads * kNames; ++i) CHECK(strcmp(names[i - 1], names[i]) != 0);
}

/* Ends in SIGABRT. */
CASE(no_place_for_a_temporary_file) { free(TF_GetTempFileName("no/such/directory")); }
