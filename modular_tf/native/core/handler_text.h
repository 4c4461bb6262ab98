// Text that handlers of signals compose and write: without the C library's formatting, which they may
// not use. What does not fit is left out.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace mtf {

// A large one is not for the stack: that of handlers may be smaller, and end where others' memory
// begins.
template <size_t kSize>
class HandlerText {
 public:
  HandlerText& start() {
    used_ = 0;
    return *this;
  }

  HandlerText& add(const char* words) {
    while (*words != '\0' && used_ < kSize - 1) bytes_[used_++] = *words++;
    bytes_[used_] = '\0';
    return *this;
  }

  HandlerText& number(uint64_t value) {
    char digits[21];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
      digits[--at] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    return add(digits + at);
  }

  HandlerText& hexadecimal(const char* bytes, size_t size) {
    static constexpr char kDigits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; ++i) {
      const auto byte = static_cast<unsigned char>(bytes[i]);
      const char pair[] = {kDigits[byte >> 4], kDigits[byte & 15], '\0'};
      add(pair);
    }
    return *this;
  }

  // Without what could steer a terminal.
  HandlerText& shown(const char* text) {
    for (; *text != '\0'; ++text) {
      const auto byte = static_cast<unsigned char>(*text);
      const char one[] = {byte < 0x20 || byte == 0x7f ? '?' : *text, '\0'};
      add(one);
    }
    return *this;
  }

  const char* get() const { return bytes_; }

  void write_to(int descriptor) const {
    for (size_t done = 0; done < used_;) {
      const ssize_t written = write(descriptor, bytes_ + done, used_ - done);
      if (written <= 0) return;
      done += static_cast<size_t>(written);
    }
  }

 private:
  char bytes_[kSize] = "";
  size_t used_ = 0;
};

}  // namespace mtf
