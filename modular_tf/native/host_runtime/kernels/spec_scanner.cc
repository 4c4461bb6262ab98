#include "spec_scanner.h"

namespace mtf::kernels {
namespace {

constexpr size_t kMostShown = 40;

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Not <cctype>, which asks the locale.
bool is_word_part(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_token_part(char c) { return is_word_part(c) || c == '.' || c == '-' || c == '+'; }

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 16;
}

}  // namespace

size_t SpecScanner::position() {
  while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  return at_;
}

bool SpecScanner::at_end() { return position() == text_.size(); }

char SpecScanner::next() { return at_end() ? '\0' : text_[at_]; }

bool SpecScanner::take(std::string_view literal) {
  if (text_.compare(position(), literal.size(), literal) != 0) return false;
  at_ += literal.size();
  return true;
}

void SpecScanner::expect(std::string_view literal) {
  if (!take(literal)) fail("'" + std::string(literal) + "'");
}

void SpecScanner::expect_end() {
  if (!at_end()) fail("the end");
}

template <class Predicate>
std::string_view SpecScanner::take_while(Predicate holds) {
  const size_t start = position();
  while (at_ < text_.size() && holds(text_[at_])) ++at_;
  return since(start);
}

std::string_view SpecScanner::word() { return take_while(is_word_part); }

std::string_view SpecScanner::token() { return take_while(is_token_part); }

std::string SpecScanner::quoted() {
  if (!is_quote()) fail("a string in quotes");
  const size_t start = at_;
  const char quote = text_[at_++];
  std::string found;
  for (;;) {
    if (at_ == text_.size() || text_[at_] == '\n') fail_at(start, "a string that ends");
    const char c = text_[at_++];
    if (c == quote) return found;
    found += c == '\\' ? escaped() : c;
  }
}

// What a backslash that was read begins.
char SpecScanner::escaped() {
  static constexpr std::string_view kLetters = "abfnrtv\\'\"?", kMeanings = "\a\b\f\n\r\t\v\\'\"?";
  const char c = at_ < text_.size() ? text_[at_] : '\0';
  if (digit_of(c) < 8) return number(8, 3);
  ++at_;
  if (c == 'x' || c == 'X') return number(16, 2);
  const size_t found = c == '\0' ? std::string_view::npos : kLetters.find(c);
  if (found == std::string_view::npos) fail_at(at_ - 2, "an escape of C");
  return kMeanings[found];
}

char SpecScanner::number(int base, int most_digits) {
  const size_t start = at_;
  int value = 0;
  while (at_ < text_.size() && at_ - start < static_cast<size_t>(most_digits) &&
         digit_of(text_[at_]) < base) {
    value = value * base + digit_of(text_[at_++]);
  }
  if (at_ == start || value > 255) fail_at(start, "a byte's number");
  return static_cast<char>(value);
}

void SpecScanner::fail_at(size_t position, std::string_view expected) const {
  const std::string_view rest = text_.substr(position, kMostShown);
  const std::string found = rest.empty() ? "the end" : "'" + std::string(rest) + "'";
  throw SpecError{position, "expected " + std::string(expected) + ", found " + found};
}

}  // namespace mtf::kernels
