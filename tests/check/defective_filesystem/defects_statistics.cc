// Defects of stat, is_directory and get_file_size.
#include <cstring>

#include "defects.h"
#include "paths.h"

namespace {

using namespace defective;

constexpr int64_t kNanosecondsOfOneSecond = 1'000'000'000;

// Wrong answers of stat, for the one path that each is about.
void miscount(const TF_Filesystem* filesystem, const char* path, TF_FileStatistics* statistics,
              TF_Status* status) {
  original.filesystem.stat(filesystem, path, statistics, status);
  if (ends_in(path, "F")) ++statistics->length;
}

void call_empty_a_directory(const TF_Filesystem* filesystem, const char* path,
                            TF_FileStatistics* statistics, TF_Status* status) {
  original.filesystem.stat(filesystem, path, statistics, status);
  if (ends_in(path, "E")) statistics->is_directory = true;
}

// A flag bit where a bool belongs.
void set_flag_bit(const TF_Filesystem* filesystem, const char* path,
                  TF_FileStatistics* statistics, TF_Status* status) {
  original.filesystem.stat(filesystem, path, statistics, status);
  if (ends_in(path, "D")) std::memset(&statistics->is_directory, 4, 1);
}

void fill_for_missing(const TF_Filesystem* filesystem, const char* path,
                      TF_FileStatistics* statistics, TF_Status* status) {
  original.filesystem.stat(filesystem, path, statistics, status);
  if (ends_in(path, "X")) *statistics = {0, 0, false};
}

void miss_below_file(const TF_Filesystem* filesystem, const char* path,
                     TF_FileStatistics* statistics, TF_Status* status) {
  if (ends_in(path, "F/x")) return TF_SetStatus(status, TF_NOT_FOUND, path);
  original.filesystem.stat(filesystem, path, statistics, status);
}

void tell_seconds(const TF_Filesystem* filesystem, const char* path,
                  TF_FileStatistics* statistics, TF_Status* status) {
  original.filesystem.stat(filesystem, path, statistics, status);
  if (ends_in(path, "timed")) statistics->mtime_nsec /= kNanosecondsOfOneSecond;
}

// As if the first length had been kept.
void keep_old_length(const TF_Filesystem* filesystem, const char* path,
                     TF_FileStatistics* statistics, TF_Status* status) {
  original.filesystem.stat(filesystem, path, statistics, status);
  if (ends_in(path, "grown")) statistics->length = 4;
}

// Wrong answers of is_directory.
bool deny_directory(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  return original.filesystem.is_directory(filesystem, path, status) && !ends_in(path, "D");
}

bool say_ok_and_false(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  const bool answer = original.filesystem.is_directory(filesystem, path, status);
  if (ends_in(path, "F")) TF_SetStatus(status, TF_OK, "");
  return answer;
}

bool refuse_missing(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  const bool answer = original.filesystem.is_directory(filesystem, path, status);
  if (ends_in(path, "X")) TF_SetStatus(status, TF_FAILED_PRECONDITION, path);
  return answer;
}

bool miss_directory_below_file(const TF_Filesystem* filesystem, const char* path,
                               TF_Status* status) {
  const bool answer = original.filesystem.is_directory(filesystem, path, status);
  if (ends_in(path, "F/x")) TF_SetStatus(status, TF_NOT_FOUND, path);
  return answer;
}

bool fail_with_true(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  return original.filesystem.is_directory(filesystem, path, status) || ends_in(path, "X");
}

// Wrong answers of get_file_size.
int64_t count_a_terminator(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  const int64_t size = original.filesystem.get_file_size(filesystem, path, status);
  return ends_in(path, "F") ? size + 1 : size;
}

int64_t give_empty_a_size(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  const int64_t size = original.filesystem.get_file_size(filesystem, path, status);
  return ends_in(path, "E") ? 1 : size;
}

int64_t size_directory(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  const int64_t size = original.filesystem.get_file_size(filesystem, path, status);
  if (!ends_in(path, "D")) return size;
  TF_SetStatus(status, TF_OK, "");
  return 4096;
}

int64_t size_missing(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  const int64_t size = original.filesystem.get_file_size(filesystem, path, status);
  if (!ends_in(path, "X")) return size;
  TF_SetStatus(status, TF_OK, "");
  return 0;
}

int64_t miss_size_below_file(const TF_Filesystem* filesystem, const char* path,
                             TF_Status* status) {
  const int64_t size = original.filesystem.get_file_size(filesystem, path, status);
  if (ends_in(path, "F/x")) TF_SetStatus(status, TF_NOT_FOUND, path);
  return size;
}

int64_t contradict_stat(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  const int64_t size = original.filesystem.get_file_size(filesystem, path, status);
  return size == 9 ? 8 : size;
}

}  // namespace

DEFECTS(statistics) = {
    {"FS-266", [](Tables& tables) { tables.filesystem.stat = miscount; }},
    {"FS-354", [](Tables& tables) { tables.filesystem.stat = call_empty_a_directory; }},
    {"FS-267", [](Tables& tables) { tables.filesystem.stat = set_flag_bit; }},
    {"FS-268", [](Tables& tables) { tables.filesystem.stat = fill_for_missing; }},
    {"FS-350", [](Tables& tables) { tables.filesystem.stat = miss_below_file; }},
    {"FS-269", [](Tables& tables) { tables.filesystem.stat = tell_seconds; }},
    {"FS-270", [](Tables& tables) { tables.filesystem.stat = keep_old_length; }},
    {"FS-271", [](Tables& tables) { tables.filesystem.is_directory = deny_directory; }},
    {"FS-272", [](Tables& tables) { tables.filesystem.is_directory = say_ok_and_false; }},
    {"FS-273", [](Tables& tables) { tables.filesystem.is_directory = refuse_missing; }},
    {"FS-351", [](Tables& tables) { tables.filesystem.is_directory = miss_directory_below_file; }},
    {"FS-274", [](Tables& tables) { tables.filesystem.is_directory = fail_with_true; }},
    {"FS-275", [](Tables& tables) { tables.filesystem.get_file_size = count_a_terminator; }},
    {"FS-356", [](Tables& tables) { tables.filesystem.get_file_size = give_empty_a_size; }},
    {"FS-276", [](Tables& tables) { tables.filesystem.get_file_size = size_directory; }},
    {"FS-277", [](Tables& tables) { tables.filesystem.get_file_size = size_missing; }},
    {"FS-352", [](Tables& tables) { tables.filesystem.get_file_size = miss_size_below_file; }},
    {"FS-278", [](Tables& tables) { tables.filesystem.get_file_size = contradict_stat; }},
};
