#include "string_stream.h"

#include <stdlib.h>

struct TF_StringStream {
  char** strings; /* malloc, each of them too */
  size_t count;
  size_t next; /* the one that TF_StringStreamNext returns */
};

TF_StringStream* mtf_string_stream_new(void) { return calloc(1, sizeof(TF_StringStream)); }

bool mtf_string_stream_add(TF_StringStream* list, char* text) {
  char** grown = text == NULL ? NULL : realloc(list->strings, (list->count + 1) * sizeof(char*));
  if (grown == NULL) {
    free(text);
    return false;
  }
  grown[list->count++] = text;
  list->strings = grown;
  return true;
}

bool TF_StringStreamNext(TF_StringStream* list, const char** result) {
  const bool is_more = list != NULL && list->next < list->count;
  *result = is_more ? list->strings[list->next++] : NULL;
  return is_more;
}

void TF_StringStreamDone(TF_StringStream* list) {
  if (list == NULL) return;
  for (size_t i = 0; i < list->count; ++i) free(list->strings[i]);
  free(list->strings);
  free(list);
}
