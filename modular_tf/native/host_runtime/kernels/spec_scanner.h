// Reads the text of a specification from left to right.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mtf::kernels {

// What is wrong with a specification, and at which of its bytes.
struct SpecError {
  size_t position;
  std::string text;
};

// Blanks before what is read are skipped. What fails throws a SpecError.
class SpecScanner {
 public:
  explicit SpecScanner(std::string_view text) : text_(text) {}

  size_t position();  // of the next byte that is no blank
  bool at_end();
  char next();  // without reading it; NUL at the end
  bool take(std::string_view literal);
  void expect(std::string_view literal);
  void expect_end();
  // Letters, digits, underscores: as many as follow, perhaps none.
  std::string_view word();
  // Bytes up to one that ends a number or a name: a blank, quote, bracket or separator.
  std::string_view token();
  // What stands in quotes, escapes decoded.
  std::string quoted();
  bool is_quote() { return next() == '"' || next() == '\''; }
  // The text from `start` to here.
  std::string_view since(size_t start) const { return text_.substr(start, at_ - start); }

  [[noreturn]] void fail(std::string_view expected) { fail_at(position(), expected); }
  [[noreturn]] void fail_at(size_t position, std::string_view expected) const;

 private:
  template <class Predicate>
  std::string_view take_while(Predicate holds);
  char escaped();
  char number(int base, int most_digits);

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace mtf::kernels
