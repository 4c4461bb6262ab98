/* logging.h and the log sink, driven from C; Python reads what comes out. */
#include "modular_tf/logging.h"

#include <pthread.h>

#include "cases.h"
#include "host_runtime.h"

CASE(one_line_of_each_kind) {
  TF_Log(TF_INFO, "info %d", 1);
  TF_Log(TF_WARNING, "warning %s", "two");
  TF_Log(TF_ERROR, "error %.1f", 3.0);
  TF_VLog(0, "vlog %d", 0);
  TF_VLog(1, "vlog %d", 1);
  TF_VLog(2, "vlog %d", 2);
  TF_DVLog(1, "dvlog %d", 1);
  TF_DVLog(2, "dvlog %d", 2);
}

static void print(int level, const char* message) {
  printf("%d %s\n", level, message);
  fflush(stdout);
}

CASE(lines_to_a_sink) {
  mtf_set_log_sink(print);
  one_line_of_each_kind();
  mtf_set_log_sink(NULL);
  TF_Log(TF_WARNING, "after the sink");
}

CASE(newlines_at_the_end) {
  mtf_set_log_sink(print);
  TF_Log(TF_INFO, "two\nlines\n\n");
  TF_Log(TF_INFO, "%s", "");
}

CASE(a_long_line) {
  static char text[100001];
  memset(text, 'x', sizeof(text) - 1);
  TF_Log(TF_INFO, "%s|", text);
}

CASE(severities_outside_the_list) {
  mtf_set_log_sink(print);
  TF_Log((TF_LogLevel)4, "four");
  TF_Log((TF_LogLevel)-1, "minus one");
}

static void* log_many(void* letter) {
  for (int i = 0; i < 200; ++i) TF_Log(TF_INFO, "%s%s%s end", (char*)letter, (char*)letter, "");
  return NULL;
}

CASE(lines_of_many_threads) {
  pthread_t threads[4];
  char letters[4][64];
  for (int i = 0; i < 4; ++i) {
    memset(letters[i], 'a' + i, 63);
    letters[i][63] = '\0';
    CHECK(pthread_create(&threads[i], NULL, log_many, letters[i]) == 0);
  }
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
}

/* The next two end in SIGABRT. */
CASE(fatal_to_stderr) { TF_Log(TF_FATAL, "the end of %s", "things"); }

CASE(fatal_to_a_sink) {
  mtf_set_log_sink(print);
  TF_Log(TF_FATAL, "the end");
}

CASE(print_the_version) { puts(mtf_runtime_version()); }
