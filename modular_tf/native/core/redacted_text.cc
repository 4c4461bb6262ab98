#include "redacted_text.h"

#include <strings.h>

#include <algorithm>
#include <cctype>
#include <cstring>

namespace mtf {
namespace {

constexpr char kHidden[] = "***";
constexpr char kQuotes[] = "'\"";

// As Python's \s and \w; all bytes of other letters than ASCII's are letters.
bool is_space(char c) { return (c >= 9 && c <= 13) || (c >= 28 && c <= 32); }
bool is_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || std::isalnum(byte) != 0 || c == '_';
}
bool is_any(char c, const char* of) { return std::strchr(of, c) != nullptr; }

// Where the characters end, from `at` on, for which `holds`.
template <class Holds>
size_t end_of(const std::string& text, size_t at, Holds&& holds) {
  while (at < text.size() && holds(at)) ++at;
  return at;
}

// The length of a control character, as it is or as `repr` writes it; 0: there is none.
size_t separator_at(const std::string& text, size_t at) {
  if (at >= text.size()) return 0;
  if (text[at] >= 1 && text[at] <= 8) return 1;
  const bool is_written = text.compare(at, 3, "\\x0") == 0 && at + 3 < text.size();
  return is_written && text[at + 3] >= '1' && text[at + 3] <= '8' ? 4 : 0;
}

// What is hidden: from `begin` to `end`; nothing where they are one.
struct Secret {
  size_t begin = 0;
  size_t end = 0;
};

// A parameter of the host, behind a control character, but for the address of the server.
Secret parameter_at(const std::string& text, size_t at, bool) {
  const size_t length = separator_at(text, at);
  const size_t name = at + length;
  if (length == 0 || text.compare(name, 5, "host=") == 0) return {};
  const size_t sign = end_of(text, name, [&](size_t i) { return is_word(text[i]); });
  if (sign == name || sign == text.size() || text[sign] != '=') return {};
  const size_t end = end_of(text, sign + 1, [&](size_t i) {
    return text[i] != '/' && !is_space(text[i]) && !is_any(text[i], kQuotes) &&
           separator_at(text, i) == 0;
  });
  return {sign + 1, end};
}

// The password of a user, up to the last @ before the path.
Secret password_at(const std::string& text, size_t at, bool is_cut) {
  if (text.compare(at, 3, "://") != 0) return {};
  const size_t colon = end_of(text, at + 3, [&](size_t i) {
    return !is_space(text[i]) && !is_any(text[i], "/:@?#'\"");
  });
  if (colon == text.size() || text[colon] != ':') return {};
  const size_t begin = colon + 1;
  const size_t end = end_of(text, begin, [&](size_t i) {
    return text[i] != '/' && !is_space(text[i]) && !is_any(text[i], kQuotes);
  });
  if (is_cut && end == text.size()) return {begin, end};
  const size_t last = text.rfind('@', end - 1);
  return last == std::string::npos || last <= begin ? Secret{} : Secret{begin, last};
}

// A token in place of a user; what is short, or has no digit, is a name.
Secret token_at(const std::string& text, size_t at, bool is_cut) {
  constexpr size_t kShortest = 20;  // characters, which begin with any byte but 10xxxxxx
  if (text.compare(at, 3, "://") != 0) return {};
  size_t characters = 0;
  bool has_digit = false;
  const size_t end = end_of(text, at + 3, [&](size_t i) {
    if (is_space(text[i]) || is_any(text[i], "/:@?#'\"")) return false;
    characters += (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    has_digit = has_digit || (text[i] >= '0' && text[i] <= '9');
    return true;
  });
  const bool is_user = end == text.size() ? is_cut : text[end] == '@';
  return is_user && has_digit && characters >= kShortest ? Secret{at + 3, end} : Secret{};
}

bool names_secret(const std::string& name) {
  static constexpr const char* kEnds[] = {"signature",  "token", "secret", "password",
                                          "credential", "key"};
  return strcasecmp(name.c_str(), "sig") == 0 ||
         std::any_of(std::begin(kEnds), std::end(kEnds), [&](const std::string& end) {
           return name.size() >= end.size() &&
                  strcasecmp(name.c_str() + (name.size() - end.size()), end.c_str()) == 0;
         });
}

// A parameter of a query that signs it.
Secret signature_at(const std::string& text, size_t at, bool) {
  if (text[at] != '?' && text[at] != '&') return {};
  const size_t sign = end_of(
      text, at + 1, [&](size_t i) { return is_word(text[i]) || text[i] == '-'; });
  if (sign == text.size() || text[sign] != '=') return {};
  if (!names_secret(text.substr(at + 1, sign - at - 1))) return {};
  const size_t end = end_of(text, sign + 1, [&](size_t i) {
    return !is_any(text[i], "&#") && !is_space(text[i]) && !is_any(text[i], kQuotes);
  });
  return {sign + 1, end};
}

using SecretAt = Secret (*)(const std::string&, size_t, bool);

std::string without(const std::string& text, bool is_cut, SecretAt secret_at) {
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    const Secret secret = secret_at(text, at, is_cut);
    const bool is_hidden = secret.begin < secret.end;
    shown.append(text, at, (is_hidden ? secret.begin : at + 1) - at);
    if (is_hidden) shown += kHidden;
    at = is_hidden ? secret.end : at + 1;
  }
  return shown;
}

}  // namespace

std::string redacted_text(const char* text, bool is_cut) {
  std::string shown = text;
  if (shown.find("://") == std::string::npos) return shown;
  for (SecretAt secret_at : {parameter_at, password_at, token_at, signature_at}) {
    shown = without(shown, is_cut, secret_at);
  }
  return shown;
}

}  // namespace mtf
