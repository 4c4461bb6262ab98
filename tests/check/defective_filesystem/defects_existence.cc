// Defects of path_exists and paths_exist.
#include <cctype>
#include <string>

#include "defects.h"
#include "paths.h"

namespace {

using namespace defective;

// Wrong answers of path_exists, for the one path that each is about.
void lose_file(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  if (ends_in(path, "F")) return TF_SetStatus(status, TF_NOT_FOUND, path);
  original.filesystem.path_exists(filesystem, path, status);
}

void lose_directory(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  if (ends_in(path, "D")) return TF_SetStatus(status, TF_NOT_FOUND, path);
  original.filesystem.path_exists(filesystem, path, status);
}

void refuse_missing(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  if (ends_in(path, "X/y")) return TF_SetStatus(status, TF_INTERNAL, path);
  original.filesystem.path_exists(filesystem, path, status);
}

void miss_below_file(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  if (ends_in(path, "F/x")) return TF_SetStatus(status, TF_NOT_FOUND, path);
  original.filesystem.path_exists(filesystem, path, status);
}

void find_prefix(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  if (ends_in(path, "fi")) return TF_SetStatus(status, TF_OK, "");
  original.filesystem.path_exists(filesystem, path, status);
}

// Wrong answers of paths_exist.
bool lose_all(const TF_Filesystem* filesystem, char** paths, int count, TF_Status** statuses) {
  const bool all = original.filesystem.paths_exist(filesystem, paths, count, statuses);
  return all && !(statuses == nullptr && count == 3 && ends_in(paths[1], "G"));
}

bool shift_statuses(const TF_Filesystem* filesystem, char** paths, int count,
                    TF_Status** statuses) {
  const bool all = original.filesystem.paths_exist(filesystem, paths, count, statuses);
  if (count == 4 && statuses != nullptr && ends_in(paths[0], "X")) {
    TF_SetStatus(statuses[0], TF_OK, "");
    TF_SetStatus(statuses[1], TF_NOT_FOUND, paths[1]);
  }
  return all;
}

bool miss_one_below_file(const TF_Filesystem* filesystem, char** paths, int count,
                         TF_Status** statuses) {
  const bool all = original.filesystem.paths_exist(filesystem, paths, count, statuses);
  for (int i = 0; i < count; ++i) {
    if (statuses != nullptr && ends_in(paths[i], "F/x")) {
      TF_SetStatus(statuses[i], TF_NOT_FOUND, paths[i]);
    }
  }
  return all;
}

bool find_missing(const TF_Filesystem* filesystem, char** paths, int count,
                  TF_Status** statuses) {
  const bool all = original.filesystem.paths_exist(filesystem, paths, count, statuses);
  return all || statuses == nullptr;
}

bool lose_nothing(const TF_Filesystem* filesystem, char** paths, int count,
                  TF_Status** statuses) {
  return count > 0 && original.filesystem.paths_exist(filesystem, paths, count, statuses);
}

bool forget_a_status(const TF_Filesystem* filesystem, char** paths, int count,
                     TF_Status** statuses) {
  if (count != 5 || statuses == nullptr) {
    return original.filesystem.paths_exist(filesystem, paths, count, statuses);
  }
  original.filesystem.paths_exist(filesystem, paths + 1, count - 1, statuses + 1);
  return false;
}

bool stop_early(const TF_Filesystem* filesystem, char** paths, int count, TF_Status** statuses) {
  constexpr int kOnePage = 10;
  const int looked_at = count > kOnePage ? kOnePage : count;
  return original.filesystem.paths_exist(filesystem, paths, looked_at, statuses);
}

// A path whose last name has all letters in one case.
template <int (&InOneCase)(int)>
std::string folded(const char* path) {
  std::string whole = path;
  for (size_t at = whole.rfind('/') + 1; at < whole.size(); ++at) {
    whole[at] = static_cast<char>(InOneCase(static_cast<unsigned char>(whole[at])));
  }
  return whole;
}

}  // namespace

DEFECTS(existence) = {
    {"FS-256", [](Tables& tables) { tables.filesystem.path_exists = lose_file; }},
    {"FS-353", [](Tables& tables) { tables.filesystem.path_exists = lose_directory; }},
    {"FS-257", [](Tables& tables) { tables.filesystem.path_exists = refuse_missing; }},
    {"FS-258", [](Tables& tables) { tables.filesystem.path_exists = miss_below_file; }},
    {"FS-259", [](Tables& tables) { tables.filesystem.path_exists = find_prefix; }},
    {"FS-260", [](Tables& tables) { tables.filesystem.paths_exist = lose_all; }},
    {"FS-261", [](Tables& tables) { tables.filesystem.paths_exist = shift_statuses; }},
    {"FS-355", [](Tables& tables) { tables.filesystem.paths_exist = miss_one_below_file; }},
    {"FS-262", [](Tables& tables) { tables.filesystem.paths_exist = find_missing; }},
    {"FS-263", [](Tables& tables) { tables.filesystem.paths_exist = lose_nothing; }},
    {"FS-264", [](Tables& tables) { tables.filesystem.paths_exist = forget_a_status; }},
    {"FS-265", [](Tables& tables) { tables.filesystem.paths_exist = stop_early; }},
    // Names that differ in case only are the same.
    {"case-is-ignored", [](Tables& tables) {
       tables.filesystem.new_writable_file = [](const TF_Filesystem* filesystem, const char* path,
                                                TF_WritableFile* file, TF_Status* status) {
         original.filesystem.new_writable_file(filesystem, folded<std::tolower>(path).c_str(), file,
                                               status);
       };
       tables.filesystem.path_exists = [](const TF_Filesystem* filesystem, const char* path,
                                          TF_Status* status) {
         original.filesystem.path_exists(filesystem, folded<std::tolower>(path).c_str(), status);
       };
       tables.filesystem.delete_recursively =
           [](const TF_Filesystem* filesystem, const char* path, uint64_t* undeleted_files,
              uint64_t* undeleted_dirs, TF_Status* status) {
             for (const std::string& name : {folded<std::toupper>(path), std::string(path)}) {
               original.filesystem.delete_recursively(filesystem, name.c_str(), undeleted_files,
                                                      undeleted_dirs, status);
             }
           };
     }},
};
