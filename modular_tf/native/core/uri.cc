#include "uri.h"

#include <cstring>

#include "scheme.h"

namespace {

size_t length_of_part(const char* path) {
  size_t length = 0;
  while (path[length] != '\0' && path[length] != '/') ++length;
  return length;
}

// The part of `out` that is written so far, and how much of it `..` must not eat.
struct CleanedPath {
  char* out;
  size_t length;
  size_t floor;  // the root slash, or leading ".." of a relative path
  bool absolute;

  void append(const char* part, size_t size) {
    if (length > 0 && out[length - 1] != '/') out[length++] = '/';
    std::memcpy(out + length, part, size);
    length += size;
  }

  void go_up() {
    if (length > floor) {
      while (length > floor && out[length - 1] != '/') --length;
      if (length > floor) --length;  // the slash before the part
    } else if (!absolute) {
      append("..", 2);
      floor = length;
    }
  }
};

}  // namespace

extern "C" size_t mtf_uri_path_offset(const char* uri, size_t* scheme_length) {
  const size_t length = mtf_scheme_length(uri, SIZE_MAX);
  if (scheme_length != nullptr) *scheme_length = length;
  if (length == 0) return 0;
  const char* host = uri + length + 3;
  return static_cast<size_t>(host - uri) + length_of_part(host);
}

extern "C" size_t mtf_clean_path(const char* path, char* out) {
  const bool absolute = path[0] == '/';
  CleanedPath cleaned = {out, 0, 0, absolute};
  if (absolute) {
    out[cleaned.length++] = '/';
    cleaned.floor = 1;
  }
  for (const char* part = path; *part != '\0';) {
    const size_t size = length_of_part(part);
    if (size == 2 && part[0] == '.' && part[1] == '.') {
      cleaned.go_up();
    } else if (size > 0 && !(size == 1 && part[0] == '.')) {
      cleaned.append(part, size);
    }
    part += size;
    while (*part == '/') ++part;
  }
  if (cleaned.length == 0) out[cleaned.length++] = '.';
  out[cleaned.length] = '\0';
  return cleaned.length;
}
