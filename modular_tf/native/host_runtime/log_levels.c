#include "log_levels.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int min_log_level;
static int max_vlog_level;

static int number_in(const char* variable) {
  const char* text = getenv(variable);
  return text == NULL ? 0 : (int)strtol(text, NULL, 10);
}

static void read_environment(void) {
  min_log_level = number_in("TF_CPP_MIN_LOG_LEVEL");
  max_vlog_level = number_in("TF_CPP_MAX_VLOG_LEVEL");
}

int mtf_min_log_level(void) {
  pthread_once(&once, read_environment);
  return min_log_level;
}

int mtf_max_vlog_level(void) {
  pthread_once(&once, read_environment);
  return max_vlog_level;
}
