/* The file functions of env.h, driven from C in an empty working directory. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cases.h"
#include "modular_tf/env.h"

static TF_Status* status;

__attribute__((constructor)) static void make_status(void) { status = TF_NewStatus(); }

static void write_file(const char* path, const char* text) {
  FILE* file = fopen(path, "w");
  CHECK(file != NULL);
  fputs(text, file);
  fclose(file);
}

static int exists(const char* path) { return access(path, F_OK) == 0; }

/* "file://HOST" and the working directory and `name`, in static storage. */
static const char* uri_of(const char* host, const char* name) {
  static char uri[4096];
  char here[2048];
  CHECK(getcwd(here, sizeof(here)) != NULL);
  snprintf(uri, sizeof(uri), "file://%s%s/%s", host, here, name);
  return uri;
}

CASE(directories_are_made_and_removed) {
  TF_CreateDir("d", status);
  CHECK_CODE(TF_OK, status);
  CHECK(exists("d"));
  TF_CreateDir("d", status);
  CHECK_CODE(TF_ALREADY_EXISTS, status);
  CHECK_TEXT("d; File exists", TF_Message(status));
  TF_CreateDir("no/d", status);
  CHECK_CODE(TF_NOT_FOUND, status);
  TF_DeleteDir("d", status);
  CHECK_CODE(TF_OK, status);
  CHECK(!exists("d"));
  TF_DeleteDir("d", status);
  CHECK_CODE(TF_NOT_FOUND, status);
}

CASE(only_empty_directories_are_removed) {
  TF_CreateDir("d", status);
  write_file("d/f", "");
  TF_DeleteDir("d", status);
  CHECK_CODE(TF_FAILED_PRECONDITION, status);
  TF_DeleteDir("d/f", status);
  CHECK_CODE(TF_FAILED_PRECONDITION, status);
  CHECK(exists("d/f"));
}

CASE(files_are_removed) {
  write_file("f", "");
  TF_DeleteFile("f", status);
  CHECK_CODE(TF_OK, status);
  CHECK(!exists("f"));
  TF_DeleteFile("f", status);
  CHECK_CODE(TF_NOT_FOUND, status);
  TF_CreateDir("d", status);
  TF_DeleteFile("d", status);
  CHECK_CODE(TF_FAILED_PRECONDITION, status);
  CHECK(exists("d"));
}

CASE(a_file_uri_means_its_path) {
  TF_CreateDir(uri_of("", "d"), status);
  CHECK_CODE(TF_OK, status);
  CHECK(exists("d"));
  TF_CreateDir(uri_of("localhost", "e"), status);
  CHECK_CODE(TF_OK, status);
  CHECK(exists("e"));
  TF_CreateDir("file://", status);
  CHECK_CODE(TF_NOT_FOUND, status);
}

CASE(what_is_no_scheme_is_a_path) {
  TF_CreateDir("c:", status);
  TF_CreateDir("c://d", status);
  CHECK_CODE(TF_OK, status);
  CHECK(exists("c:/d"));
  TF_CreateDir("s3-x:", status);
  TF_CreateDir("s3-x://d", status);
  CHECK_CODE(TF_OK, status);
  CHECK(exists("s3-x:/d"));
}

static void check_refused(void) {
  CHECK_CODE(TF_UNIMPLEMENTED, status);
  CHECK_TEXT("File system scheme 's3' not implemented (file: 's3://b/k')", TF_Message(status));
}

CASE(other_schemes_are_refused_by_every_function) {
  const char* uri = "s3://b/k";
  int64_t files = 7;
  int64_t dirs = 7;
  TF_WritableFileHandle* handle = (TF_WritableFileHandle*)status;
  TF_FileStatistics stats = {7, 7, true};
  const char* name = "";
  TF_CreateDir(uri, status);
  check_refused();
  TF_DeleteDir(uri, status);
  check_refused();
  TF_DeleteFile(uri, status);
  check_refused();
  TF_DeleteRecursively(uri, &files, &dirs, status);
  check_refused();
  CHECK(files == 0 && dirs == 1);
  TF_FileStat(uri, &stats, status);
  check_refused();
  CHECK(stats.length == 7);
  TF_NewWritableFile(uri, &handle, status);
  check_refused();
  CHECK(handle == NULL);
  TF_StringStream* names = TF_GetChildren(uri, status);
  check_refused();
  CHECK(!TF_StringStreamNext(names, &name));
  TF_StringStreamDone(names);
}

CASE(stat_tells_length_time_and_kind) {
  TF_FileStatistics stats = {7, 7, true};
  write_file("f", "hello");
  struct timespec times[2] = {{1, 0}, {1700000000, 123456789}};
  CHECK(utimensat(AT_FDCWD, "f", times, 0) == 0);
  TF_FileStat("f", &stats, status);
  CHECK_CODE(TF_OK, status);
  CHECK(stats.length == 5);
  CHECK(stats.mtime_nsec == 1700000000123456789);
  CHECK(!stats.is_directory);
  TF_CreateDir("d", status);
  CHECK(symlink("d", "link") == 0);
  TF_FileStat("link", &stats, status);
  CHECK(stats.is_directory);
}

CASE(stat_tells_the_latest_time_that_fits_for_a_later_one) {
  TF_FileStatistics stats = {7, 7, true};
  write_file("f", "hello");
  struct timespec times[2] = {{1, 0}, {10000000000, 0}}; /* in 2286 */
  CHECK(utimensat(AT_FDCWD, "f", times, 0) == 0);
  struct stat kept;
  CHECK(stat("f", &kept) == 0);
  TF_FileStat("f", &stats, status);
  CHECK(stats.mtime_nsec == INT64_MAX || kept.st_mtim.tv_sec < 9223372036); /* the disk keeps no such time */
}

CASE(stat_leaves_the_output_alone_on_failure) {
  TF_FileStatistics stats = {7, 7, true};
  TF_FileStat("nothing", &stats, status);
  CHECK_CODE(TF_NOT_FOUND, status);
  CHECK(stats.length == 7 && stats.mtime_nsec == 7 && stats.is_directory);
}

static long size_of(const char* path) {
  struct stat found;
  CHECK(stat(path, &found) == 0);
  return (long)found.st_size;
}

CASE(a_written_file_has_its_bytes) {
  TF_WritableFileHandle* file = NULL;
  write_file("f", "old contents");
  TF_NewWritableFile("f", &file, status);
  CHECK_CODE(TF_OK, status);
  CHECK(size_of("f") == 0);
  TF_AppendWritableFile(file, "a\0b", 3, status);
  CHECK_CODE(TF_OK, status);
  TF_AppendWritableFile(file, NULL, 0, status);
  CHECK_CODE(TF_OK, status);
  TF_FlushWritableFile(file, status);
  CHECK_CODE(TF_OK, status);
  CHECK(size_of("f") == 3);
  TF_AppendWritableFile(file, "cd", 2, status);
  TF_SyncWritableFile(file, status);
  CHECK_CODE(TF_OK, status);
  CHECK(size_of("f") == 5);
  TF_AppendWritableFile(file, "e", 1, status);
  TF_CloseWritableFile(file, status);
  CHECK_CODE(TF_OK, status);
  char bytes[8] = "";
  FILE* reader = fopen("f", "r");
  CHECK(fread(bytes, 1, sizeof(bytes), reader) == 6);
  CHECK(memcmp(bytes, "a\0bcde", 6) == 0);
}

CASE(a_file_that_cannot_be_opened_has_no_handle) {
  TF_WritableFileHandle* file = (TF_WritableFileHandle*)status;
  TF_NewWritableFile("no/f", &file, status);
  CHECK_CODE(TF_NOT_FOUND, status);
  CHECK(file == NULL);
  TF_CreateDir("d", status);
  TF_NewWritableFile("d", &file, status);
  CHECK_CODE(TF_FAILED_PRECONDITION, status);
  CHECK_TEXT("d; Is a directory", TF_Message(status));
}

CASE(a_full_device_is_reported_by_each_call_that_writes) {
  TF_WritableFileHandle* file = NULL;
  TF_NewWritableFile("/dev/full", &file, status);
  CHECK_CODE(TF_OK, status);
  static const char block[1 << 16];
  TF_AppendWritableFile(file, block, sizeof(block), status);
  CHECK_CODE(TF_RESOURCE_EXHAUSTED, status);
  CHECK_TEXT("/dev/full; No space left on device", TF_Message(status));
  TF_AppendWritableFile(file, "x", 1, status);
  TF_FlushWritableFile(file, status);
  CHECK_CODE(TF_RESOURCE_EXHAUSTED, status);
  TF_AppendWritableFile(file, "x", 1, status);
  TF_SyncWritableFile(file, status);
  CHECK_CODE(TF_RESOURCE_EXHAUSTED, status);
  TF_AppendWritableFile(file, "x", 1, status);
  TF_CloseWritableFile(file, status);
  CHECK_CODE(TF_RESOURCE_EXHAUSTED, status);
}

CASE(children_are_listed_without_self_and_parent) {
  const char* name = NULL;
  int seen = 0;
  TF_CreateDir("d", status);
  write_file("d/.hidden", "");
  write_file("d/b", "");
  TF_CreateDir("d/c", status);
  TF_StringStream* names = TF_GetChildren("d", status);
  CHECK_CODE(TF_OK, status);
  while (TF_StringStreamNext(names, &name)) {
    seen += 1 * (strcmp(name, ".hidden") == 0);
    seen += 10 * (strcmp(name, "b") == 0);
    seen += 100 * (strcmp(name, "c") == 0);
    seen += 1000 * (strcmp(name, ".") == 0 || strcmp(name, "..") == 0);
  }
  CHECK(seen == 111);
  CHECK(name == NULL);
  CHECK(!TF_StringStreamNext(names, &name));
  TF_StringStreamDone(names);
}

CASE(what_cannot_be_listed_is_an_empty_stream) {
  const char* name = "";
  TF_StringStream* names = TF_GetChildren("nothing", status);
  CHECK_CODE(TF_NOT_FOUND, status);
  CHECK(names != NULL && !TF_StringStreamNext(names, &name) && name == NULL);
  TF_StringStreamDone(names);
  write_file("f", "");
  names = TF_GetChildren("f", status);
  CHECK_CODE(TF_FAILED_PRECONDITION, status);
  TF_StringStreamDone(names);
}

CASE(no_stream_is_an_empty_stream) {
  const char* name = "";
  CHECK(!TF_StringStreamNext(NULL, &name));
  CHECK(name == NULL);
  TF_StringStreamDone(NULL);
}

static void check_removal(const char* path, TF_Code code, int64_t dirs_left) {
  int64_t files = 7;
  int64_t dirs = 7;
  TF_DeleteRecursively(path, &files, &dirs, status);
  CHECK_CODE(code, status);
  CHECK(files == 0 && dirs == dirs_left);
}

CASE(a_tree_is_removed_without_following_links) {
  TF_CreateDir("kept", status);
  write_file("kept/f", "");
  TF_CreateDir("tree", status);
  TF_CreateDir("tree/a", status);
  TF_CreateDir("tree/a/b", status);
  write_file("tree/a/b/f", "");
  CHECK(symlink("../kept", "tree/link") == 0);
  CHECK(symlink("nowhere", "tree/dangling") == 0);
  check_removal("tree", TF_OK, 0);
  CHECK(!exists("tree"));
  CHECK(exists("kept/f"));
}

CASE(a_single_file_is_a_tree) {
  write_file("f", "");
  check_removal("f", TF_OK, 0);
  CHECK(!exists("f"));
}

CASE(a_slash_behind_a_link_does_not_lead_into_it) {
  TF_CreateDir("kept", status);
  write_file("kept/f", "");
  CHECK(symlink("kept", "link") == 0);
  check_removal("link/", TF_OK, 0);
  CHECK(!exists("link"));
  CHECK(exists("kept/f"));
}

CASE(what_cannot_be_removed_in_the_end_is_not_emptied) {
  TF_CreateDir("kept", status);
  write_file("kept/f", "");
  check_removal(".", TF_FAILED_PRECONDITION, 1);
  check_removal("kept/.", TF_FAILED_PRECONDITION, 1);
  check_removal("kept/..", TF_FAILED_PRECONDITION, 1);
  CHECK(exists("kept/f"));
}

/* Each level is entered from the one above: no path could be as long. */
static void make_deep_tree(const char* name, int depth) {
  int at = open(".", O_PATH);
  for (int i = 0; i < depth; ++i) {
    CHECK(mkdirat(at, name, 0700) == 0);
    const int below = openat(at, name, O_PATH);
    CHECK(below >= 0);
    close(at);
    at = below;
  }
  close(at);
}

CASE(a_tree_may_be_deeper_than_paths_are_long) {
  make_deep_tree("directory", 600);
  check_removal("directory", TF_OK, 0);
  CHECK(!exists("directory"));
}

CASE(a_missing_tree_counts_as_one_directory) { check_removal("nothing", TF_NOT_FOUND, 1); }

/* procfs refuses every removal, also to the superuser. */
CASE(what_is_left_of_a_tree_is_counted) {
  int64_t files = 0;
  int64_t dirs = 0;
  TF_DeleteRecursively("/proc/self/fdinfo", &files, &dirs, status);
  CHECK_CODE(TF_PERMISSION_DENIED, status);
  CHECK(strncmp(TF_Message(status), "/proc/self/fdinfo: ", strlen("/proc/self/fdinfo: ")) == 0);
  CHECK(files >= 3);
  CHECK(dirs == 1);
}
