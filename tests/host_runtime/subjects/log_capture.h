/* What the host runtime logs, kept for a case instead of written to stderr. */
#pragma once

#include <stdio.h>

#include "host_runtime.h"

static int logged_lines;
static char last_logged[512];
static const void* last_caller;

static int keep_line(const mtf_plugin_line* line) {
  ++logged_lines;
  snprintf(last_logged, sizeof(last_logged), "%s", line->text);
  last_caller = line->caller;
  return 1;
}

static void capture_log(void) { mtf_set_log_sink(keep_line); }
