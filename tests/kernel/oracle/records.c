#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe.h"

static const char* const kCodes[] = {
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
};

static void without_line_ends(char* line) {
  for (; *line; ++line) {
    if (*line == '\n' || *line == '\r') *line = ' ';
  }
}

static void append(const char* key, const char* answer, const char* message) {
  char line[4096];
  const char* separator = *message ? " -- " : "";
  int length = snprintf(line, sizeof line - 1, "%s\t%s%s%s", key, answer, separator, message);
  if (length > (int)sizeof line - 2) length = (int)sizeof line - 2;
  without_line_ends(line);
  line[length] = '\n';
  const char* name = getenv("MTF_PROBE_LOG");
  int file = name ? open(name, O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;
  if (file < 0) return;
  if (write(file, line, (size_t)length + 1) < 0) perror("MTF_PROBE_LOG");
  close(file);
}

void record(const char* key, const char* format, ...) {
  char answer[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(answer, sizeof answer, format, arguments);
  va_end(arguments);
  append(key, answer, "");
}

void record_status(const char* key, TF_Status* status, const char* format, ...) {
  char answer[1024];
  int code = (int)TF_GetCode(status);
  const char* name = code >= 0 && code <= 16 ? kCodes[code] : "?";
  int length = snprintf(answer, sizeof answer, "%s ", name);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(answer + length, sizeof answer - (size_t)length, format, arguments);
  va_end(arguments);
  const size_t used = strlen(answer);
  if (answer[used - 1] == ' ') answer[used - 1] = 0;
  append(key, answer, TF_Message(status));
  TF_SetStatus(status, TF_OK, "");
}

const char* text(const char* format, ...) {
  static _Thread_local char texts[16][512];
  static _Thread_local unsigned next;
  char* made = texts[next++ % 16];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(made, sizeof texts[0], format, arguments);
  va_end(arguments);
  return made;
}

TF_Status* earlier_failure(void) {
  TF_Status* status = TF_NewStatus();
  TF_SetStatus(status, TF_ABORTED, "earlier");
  return status;
}

const char* described(const TF_Tensor* tensor) {
  if (tensor == NULL) return "NULL";
  char dims[128] = "";
  for (int i = 0; i < TF_NumDims(tensor) && strlen(dims) < 100; ++i) {
    sprintf(dims + strlen(dims), i ? ",%lld" : "%lld", (long long)TF_Dim(tensor, i));
  }
  return text("type=%d dims=[%s] elements=%lld bytes=%zu data=%s aligned=%d", TF_TensorType(tensor),
              dims, (long long)TF_TensorElementCount(tensor), TF_TensorByteSize(tensor),
              TF_TensorData(tensor) ? "yes" : "NULL", TF_TensorIsAligned(tensor));
}
