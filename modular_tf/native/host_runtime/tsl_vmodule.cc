#include "tsl_vmodule.h"

#include <charconv>

namespace mtf {
namespace {

void add_entry(std::string_view entry, VmoduleLevels* levels) {
  const std::size_t equals = entry.find('=');
  if (equals == std::string_view::npos) return;
  int level = 0;
  const char* end = entry.data() + entry.size();
  const auto parsed = std::from_chars(entry.data() + equals + 1, end, level);
  if (parsed.ec == std::errc() && parsed.ptr == end) {
    levels->insert_or_assign(std::string(entry.substr(0, equals)), level);
  }
}

}  // namespace

VmoduleLevels parse_vmodule(std::string_view text) {
  VmoduleLevels levels;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    add_entry(text.substr(0, comma), &levels);
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return levels;
}

std::string_view module_of(std::string_view file_name) {
  const std::size_t slash = file_name.rfind('/');
  if (slash != std::string_view::npos) file_name.remove_prefix(slash + 1);
  return file_name.substr(0, file_name.find('.'));
}

}  // namespace mtf
