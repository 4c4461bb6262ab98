// What get_children and get_matching_paths give out.
#pragma once

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "defects.h"

namespace defective {

// Copies names to where the host looks for them and returns their count.
inline int give_out(const std::vector<std::string>& names, char*** entries) {
  auto** array = static_cast<char**>(std::calloc(names.size() + 1, sizeof(char*)));
  for (size_t i = 0; i < names.size(); ++i) array[i] = strdup(names[i].c_str());
  *entries = array;
  return static_cast<int>(names.size());
}

// The children of a directory by the reference plugin; none where it fails.
inline std::vector<std::string> children_of(const TF_Filesystem* filesystem, const char* path,
                                            TF_Status* status) {
  char** entries = nullptr;
  const int count = original.filesystem.get_children(filesystem, path, &entries, status);
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    names.emplace_back(entries[i]);
    std::free(entries[i]);
  }
  std::free(entries);
  return names;
}

}  // namespace defective
