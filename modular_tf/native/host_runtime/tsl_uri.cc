// URI helpers that plugins of TensorFlow 2.16 import; results point into the argument. The rules are
// TensorFlow's own (filesystem-abi §5).
#include <cstddef>
#include <string_view>

#include "modular_tf/export.h"

namespace tsl {
namespace io {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool may_follow_in_scheme(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '.'; }

// A letter, then one or more letters, digits or dots, then "://"; 0 when there is no scheme.
std::size_t scheme_length(std::string_view uri) {
  std::size_t length = 0;
  if (!uri.empty() && is_letter(uri[0])) {
    for (length = 1; length < uri.size() && may_follow_in_scheme(uri[length]); ++length) continue;
  }
  return length > 1 && uri.substr(length, 3) == "://" ? length : 0;
}

}  // namespace

TF_CAPI_EXPORT void ParseURI(std::string_view uri, std::string_view* scheme, std::string_view* host,
                             std::string_view* path) {
  const std::size_t length = scheme_length(uri);
  const std::string_view rest = length == 0 ? uri : uri.substr(length + 3);
  const std::size_t host_length = length == 0 ? 0 : rest.find('/');
  *scheme = uri.substr(0, length);
  *host = rest.substr(0, host_length);
  *path = host_length == std::string_view::npos ? rest.substr(rest.size())
                                                : rest.substr(host_length);
}

// All before the last '/' of the path; scheme and host stay, and so does the root's own slash.
TF_CAPI_EXPORT std::string_view Dirname(std::string_view uri) {
  std::string_view scheme;
  std::string_view host;
  std::string_view path;
  ParseURI(uri, &scheme, &host, &path);
  const std::size_t before_path = uri.size() - path.size();
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return uri.substr(0, before_path);
  return uri.substr(0, before_path + (slash == 0 ? 1 : slash));
}

}  // namespace io
}  // namespace tsl
