// Characters of UTF-8 in bytes that may be none.
#pragma once

#include <cstddef>
#include <string>

namespace mtf {

// The length of the character that begins there; 0 where none does.
inline size_t character_length(const std::string& text, size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const size_t length = first < 0x80                     ? 1
                        : first >= 0xc2 && first < 0xe0  ? 2
                        : first >= 0xe0 && first < 0xf0  ? 3
                        : first >= 0xf0 && first <= 0xf4 ? 4
                                                         : 0;
  if (text.size() - at < length) return 0;
  for (size_t more = 1; more < length; ++more) {
    if ((static_cast<unsigned char>(text[at + more]) & 0xc0) != 0x80) return 0;
  }
  // What the second byte cannot be: longer than needed, half of a surrogate pair, beyond the last.
  const auto second = length > 2 ? static_cast<unsigned char>(text[at + 1]) : 0;
  const bool is_wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
                        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90);
  return is_wrong ? 0 : length;
}

}  // namespace mtf
