// Helpers for strings, URIs and locks that plugins of TensorFlow 2.16 import. Layouts are the ABI:
// AlphaNum is made by inlined code in the plugin.
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "fork_lock.h"
#include "modular_tf/export.h"
#include "scheme.h"

namespace tsl {
namespace strings {

constexpr std::size_t kBufferSize = 32;

struct AlphaNum {
  std::string_view text;
  char digits[kBufferSize];  // what `text` points to when the value was a number
};
static_assert(sizeof(AlphaNum) == 48, "the size is compiled into plugins");

// Writes the decimal digits and a NUL; returns how many digits. `buffer` has 32 bytes.
TF_CAPI_EXPORT std::size_t FastUInt64ToBufferLeft(uint64_t value, char* buffer) {
  char* end = std::to_chars(buffer, buffer + kBufferSize - 1, value).ptr;
  *end = '\0';
  return static_cast<std::size_t>(end - buffer);
}

namespace internal {

TF_CAPI_EXPORT std::string CatPieces(std::initializer_list<std::string_view> pieces) {
  std::size_t length = 0;
  for (std::string_view piece : pieces) length += piece.size();
  std::string whole;
  whole.reserve(length);
  for (std::string_view piece : pieces) whole.append(piece);
  return whole;
}

}  // namespace internal

TF_CAPI_EXPORT std::string StrCat(const AlphaNum& a) { return std::string(a.text); }

TF_CAPI_EXPORT std::string StrCat(const AlphaNum& a, const AlphaNum& b) {
  return internal::CatPieces({a.text, b.text});
}

TF_CAPI_EXPORT std::string StrCat(const AlphaNum& a, const AlphaNum& b, const AlphaNum& c) {
  return internal::CatPieces({a.text, b.text, c.text});
}

TF_CAPI_EXPORT std::string StrCat(const AlphaNum& a, const AlphaNum& b, const AlphaNum& c,
                                  const AlphaNum& d) {
  return internal::CatPieces({a.text, b.text, c.text, d.text});
}

}  // namespace strings

namespace str_util {

TF_CAPI_EXPORT bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

TF_CAPI_EXPORT bool EndsWith(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

// Cuts the prefix off `*text` when it is there, and says whether it was.
TF_CAPI_EXPORT bool ConsumePrefix(std::string_view* text, std::string_view prefix) {
  const bool starts = StartsWith(*text, prefix);
  if (starts) text->remove_prefix(prefix.size());
  return starts;
}

}  // namespace str_util

// Results point into the argument. The rules are TensorFlow's own (filesystem-abi §5).
namespace io {

TF_CAPI_EXPORT void ParseURI(std::string_view uri, std::string_view* scheme, std::string_view* host,
                             std::string_view* path) {
  const std::size_t length = mtf_scheme_length(uri.data(), uri.size());
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

// 16 opaque bytes, a constructor here, a trivial destructor in the plugin; all zero where it was never
// constructed at run time.
class mutex {
 public:
  TF_CAPI_EXPORT mutex();
  TF_CAPI_EXPORT void lock();
  TF_CAPI_EXPORT void unlock();

 private:
  mtf::Lock lock_;  // which a forked child finds free
  uint32_t unused_[2];
};
static_assert(sizeof(mutex) == 16, "the size is compiled into plugins");

mutex::mutex() : unused_{} {}
void mutex::lock() { lock_.lock(); }
void mutex::unlock() { lock_.unlock(); }

}  // namespace tsl
