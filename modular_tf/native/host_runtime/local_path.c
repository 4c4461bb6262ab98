#include "local_path.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static int may_follow_in_scheme(char c) {
  return is_ascii_letter(c) || (c >= '0' && c <= '9') || c == '.';
}

/* The length of the scheme in front of "://", 0 when there is none. One letter alone is none:
 * that is TensorFlow's rule (filesystem-abi §5). */
static size_t scheme_length(const char* uri) {
  size_t length = 0;
  if (is_ascii_letter(uri[0])) {
    for (length = 1; may_follow_in_scheme(uri[length]); ++length) continue;
  }
  return length > 1 && strncmp(uri + length, "://", 3) == 0 ? length : 0;
}

static void refuse_scheme(const char* uri, size_t length, TF_Status* status) {
  char* message = NULL;
  if (asprintf(&message, "File system scheme '%.*s' not implemented (file: '%s')", (int)length, uri,
               uri) < 0) {
    message = NULL;
  }
  TF_SetStatus(status, TF_UNIMPLEMENTED, message);
  free(message);
}

const char* mtf_local_path(const char* uri, TF_Status* status) {
  TF_SetStatus(status, TF_OK, NULL);
  const size_t length = scheme_length(uri);
  if (length == 0) return uri;
  if (length == 4 && strncmp(uri, "file", 4) == 0) {
    const char* host = uri + strlen("file://");
    return host + strcspn(host, "/");
  }
  refuse_scheme(uri, length, status);
  return NULL;
}
