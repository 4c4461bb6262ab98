/* Where temporary files go: the first directory that exists of those the environment names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "copied_text.h"
#include "log_line.h"
#include "modular_tf/env.h"
#include "string_stream.h"

static const char* const kVariables[] = {"TEST_TMPDIR", "TMPDIR", "TMP"};
enum { kCandidates = 4 }; /* one per variable, then /tmp */

static const char* candidate(int index) {
  return index < kCandidates - 1 ? getenv(kVariables[index]) : "/tmp";
}

static bool is_directory(const char* path) {
  struct stat found;
  return path != NULL && *path != '\0' && stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

static const char* slash_after(const char* directory) {
  return directory[strlen(directory) - 1] == '/' ? "" : "/";
}

/* NULL when memory is out. The result is the caller's. */
static char* with_slash(const char* directory) {
  char* path = NULL;
  return asprintf(&path, "%s%s", directory, slash_after(directory)) < 0 ? NULL : path;
}

TF_StringStream* TF_GetLocalTempDirectories(void) {
  TF_StringStream* directories = mtf_string_stream_new();
  for (int i = 0; directories != NULL && i < kCandidates; ++i) {
    const char* path = candidate(i);
    if (is_directory(path) && mtf_string_stream_add(directories, with_slash(path))) break;
  }
  return directories;
}

/* Creates an empty file of a new name, for this user alone. NULL when the directory refuses. */
static char* create_in(const char* directory, const char* extension) {
  char* path = NULL;
  const int length = (int)mtf_text_length(extension);
  const char* dot = length == 0 ? "" : ".";
  if (asprintf(&path, "%s%smodular_tf_XXXXXX%s%.*s", directory, slash_after(directory), dot, length,
               extension) < 0) {
    return NULL;
  }
  const int file = mkstemps(path, (int)strlen(dot) + length);
  if (file < 0) {
    free(path);
    return NULL;
  }
  close(file);
  return path;
}

char* TF_GetTempFileName(const char* extension) {
  for (int i = 0; i < kCandidates; ++i) {
    const char* directory = candidate(i);
    char* path = is_directory(directory) ? create_in(directory, extension) : NULL;
    if (path != NULL) return path;
  }
  /* Plugins do not check for NULL, so it would end them anyway, with less to read. */
  mtf_log_fatal("no directory takes a temporary file; set TMPDIR to a writable one",
                __builtin_return_address(0));
}
