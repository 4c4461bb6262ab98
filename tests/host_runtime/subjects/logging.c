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

static int print(const mtf_plugin_line* line) {
  printf("%d %s\n", line->level, line->text);
  fflush(stdout);
  return 1;
}

static int refuse(const mtf_plugin_line* line) {
  (void)line;
  return 0;
}

CASE(lines_to_a_sink) {
  mtf_set_log_sink(print);
  one_line_of_each_kind();
  mtf_set_log_sink(NULL);
  TF_Log(TF_WARNING, "after the sink");
}

CASE(lines_that_the_sink_refuses) {
  mtf_set_log_sink(refuse);
  TF_Log(TF_ERROR, "refused");
}

static int add_source(const mtf_plugin_line* line) {
  mtf_plugin_line with_source = *line;
  with_source.file = "source.c";
  with_source.line = 7;
  mtf_write_log_line(&with_source);
  return 1;
}

CASE(a_line_with_its_source) {
  mtf_set_log_sink(add_source);
  TF_Log(TF_INFO, "text");
}

/* Whether lines carry the time, and an address in the function that wrote them. */
static int check_line(const mtf_plugin_line* line) {
  const char* caller = line->caller;
  const char* here = (const char*)(uintptr_t)check_line;
  CHECK(caller - here < 4096 && here - caller < 4096);
  CHECK(line->file == NULL && line->line == 0);
  CHECK(line->time_ns > 1700000000000000000);
  return 1;
}

CASE(whose_lines_they_are) {
  mtf_set_log_sink(check_line);
  one_line_of_each_kind();
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
