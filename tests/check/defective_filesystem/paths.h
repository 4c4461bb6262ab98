// Which paths a defect is about.
#pragma once

#include <string_view>

namespace defective {

// Whether a path ends in these whole names: "/r/X/y" ends in "y" and in "X/y".
inline bool ends_in(std::string_view path, std::string_view names) {
  if (path.size() <= names.size()) return false;
  const size_t start = path.size() - names.size();
  return path[start - 1] == '/' && path.substr(start) == names;
}

}  // namespace defective
