#include "path.h"

#include <algorithm>

namespace ram {
namespace {

constexpr std::string_view kPrefix = MTF_RAM_SCHEME "://";

void take(std::string_view name, std::vector<std::string_view>& names) {
  if (name.empty() || name == ".") return;
  if (name != "..") return names.push_back(name);
  if (!names.empty()) names.pop_back();
}

std::string_view without_scheme(std::string_view uri) {
  return uri.substr(0, kPrefix.size()) == kPrefix ? uri.substr(kPrefix.size()) : uri;
}

}  // namespace

std::vector<std::string_view> components(std::string_view path) {
  std::vector<std::string_view> names;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    take(path.substr(0, end), names);
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return names;
}

std::string canonical_path(std::string_view uri) {
  std::string path;
  for (std::string_view name : components(without_scheme(uri))) path.append("/").append(name);
  return path.empty() ? "/" : path;
}

}  // namespace ram
