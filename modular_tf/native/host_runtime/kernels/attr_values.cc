#include "attr_values.h"

#include <locale.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <locale>
#include <sstream>

#include "data_types.h"

namespace mtf::kernels {
namespace {

// Messages in messages: specifications of ops have three levels.
constexpr int kMostLevels = 32;
constexpr int kFloatDigits = 9;  // tell all floats apart

bool starts_with(std::string_view text, std::string_view start) {
  return text.compare(0, start.size(), start) == 0;
}

std::string lower_case(std::string_view text) {
  std::string changed(text);
  for (char& c : changed) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return changed;
}

std::string hex_byte(char c) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return {kDigits[byte >> 4], kDigits[byte & 15]};
}

// Adjacent strings are one.
std::string read_string(SpecScanner& scanner) {
  std::string text = scanner.quoted();
  while (scanner.is_quote()) text += scanner.quoted();
  return text;
}

std::string read_bool(SpecScanner& scanner) {
  const size_t start = scanner.position();
  const std::string_view word = scanner.word();
  if (word == "true" || word == "True" || word == "t" || word == "1") return "true";
  if (word == "false" || word == "False" || word == "f" || word == "0") return "false";
  scanner.fail_at(start, "true or false");
}

// strtof asks the locale for the decimal point.
const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);

// Digits and exponent of a finite value: the fewest digits that are read back as the same float.
std::string shortest_scientific(float value) {
  for (int digits = 1;; ++digits) {
    std::ostringstream out;
    out.imbue(std::locale::classic());
    out.precision(digits - 1);
    out << std::scientific << value;
    if (digits == kFloatDigits || strtof_l(out.str().c_str(), nullptr, c_locale) == value) {
      return out.str();
    }
  }
}

// As Python writes a float: 0.001, 1.0, 1e-05.
std::string float_text(float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const std::string text = shortest_scientific(value);
  const size_t mark = text.find('e');
  const int exponent = std::atoi(text.c_str() + mark + 1);
  if (exponent < -4 || exponent >= 16) return text;
  const std::string sign = text[0] == '-' ? "-" : "";
  std::string digits;
  for (char c : text.substr(0, mark)) digits += c >= '0' && c <= '9' ? std::string(1, c) : "";
  if (exponent < 0) {
    return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  }
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) digits.resize(whole + 1, '0');
  return sign + digits.insert(whole, ".");
}

std::string read_float(SpecScanner& scanner) {
  const size_t start = scanner.position();
  std::string token = lower_case(scanner.token());
  const bool is_hexadecimal = token.find('x') != std::string::npos;
  const bool is_infinite = token.find("inf") != std::string::npos;
  if (!is_hexadecimal && !is_infinite && !token.empty() && token.back() == 'f') token.pop_back();
  char* end = nullptr;
  const float value = strtof_l(token.c_str(), &end, c_locale);
  if (token.empty() || is_hexadecimal || *end != '\0') scanner.fail_at(start, "a number");
  return float_text(value);
}

// -- messages in the text format of protocol buffers --

void skip_message(SpecScanner& scanner, int level);
void skip_list(SpecScanner& scanner, int level);

void skip_field_value(SpecScanner& scanner, int level) {
  if (level > kMostLevels) scanner.fail("fewer levels of braces");
  if (scanner.next() == '{' || scanner.next() == '<') return skip_message(scanner, level);
  if (scanner.next() == '[') return skip_list(scanner, level);
  if (scanner.is_quote()) return static_cast<void>(read_string(scanner));
  if (scanner.token().empty()) scanner.fail("a value");
}

void skip_list(SpecScanner& scanner, int level) {
  scanner.expect("[");
  if (scanner.take("]")) return;
  do {
    skip_field_value(scanner, level + 1);
  } while (scanner.take(","));
  scanner.expect("]");
}

// Reads `{name: value ...}`; `field(name)` reads each value from behind the name.
template <class Field>
void read_message(SpecScanner& scanner, Field field) {
  const bool angle = scanner.take("<");
  if (!angle) scanner.expect("{");
  const std::string_view end = angle ? ">" : "}";
  while (!scanner.take(end)) {
    const std::string_view name = scanner.word();
    if (name.empty()) scanner.fail("a field or '" + std::string(end) + "'");
    if (!scanner.take(":") && scanner.next() != '{' && scanner.next() != '<') scanner.fail("':'");
    field(name);
    if (!scanner.take(",")) scanner.take(";");
  }
}

void skip_message(SpecScanner& scanner, int level) {
  read_message(scanner, [&](std::string_view) { skip_field_value(scanner, level + 1); });
}

std::string read_dimension(SpecScanner& scanner) {
  int64_t size = 0;  // what a field that is not written holds
  read_message(scanner, [&](std::string_view name) {
    if (name == "name") return static_cast<void>(read_string(scanner));
    if (name != "size") scanner.fail("the value of size or name");
    const size_t start = scanner.position();
    size = read_int(scanner);
    if (size < -1) scanner.fail_at(start, "a size of at least -1");
  });
  return std::to_string(size);
}

// `{size: 1}` or `[{size: 1}, {size: 2}]`.
std::string read_dimensions(SpecScanner& scanner) {
  if (!scanner.take("[")) return read_dimension(scanner);
  if (scanner.take("]")) return "";
  std::string found = read_dimension(scanner);
  while (scanner.take(",")) found += "," + read_dimension(scanner);
  scanner.expect("]");
  return found;
}

std::string read_shape(SpecScanner& scanner) {
  const size_t start = scanner.position();
  if (scanner.next() != '{' && scanner.next() != '<') {
    scanner.fail("a shape such as {dim {size: 2}} or {unknown_rank: true}");
  }
  std::string dimensions;
  bool has_unknown_rank = false;
  read_message(scanner, [&](std::string_view name) {
    if (name == "unknown_rank") {
      has_unknown_rank = read_bool(scanner) == "true";
    } else if (name == "dim") {
      const std::string found = read_dimensions(scanner);
      if (!found.empty()) dimensions += (dimensions.empty() ? "" : ",") + found;
    } else {
      scanner.fail("the value of dim or unknown_rank");
    }
  });
  if (has_unknown_rank && !dimensions.empty()) scanner.fail_at(start, "dimensions or no rank");
  return has_unknown_rank ? "?" : "[" + dimensions + "]";
}

std::string read_tensor(SpecScanner& scanner) {
  const size_t start = scanner.position();
  skip_message(scanner, 0);
  std::string hex;
  for (char c : scanner.since(start)) hex += hex_byte(c);
  return "tensor(" + hex + ")";
}

std::string read_function(SpecScanner& scanner) {
  std::string called;
  read_message(scanner, [&](std::string_view name) {
    if (name == "name") {
      called = read_string(scanner);
    } else {
      skip_field_value(scanner, 1);
    }
  });
  return "func(" + in_quotes(called) + ")";
}

int base_of(std::string_view digits) {
  if (starts_with(digits, "0x") || starts_with(digits, "0X")) return 16;
  return digits.size() > 1 && digits[0] == '0' ? 8 : 10;
}

}  // namespace

int64_t read_int(SpecScanner& scanner) {
  const size_t start = scanner.position();
  const bool is_negative = scanner.take("-");
  const std::string digits(scanner.word());
  const std::string token = (is_negative ? "-" : "") + digits;
  char* end = nullptr;
  errno = 0;
  const int64_t value = std::strtoll(token.c_str(), &end, base_of(digits));
  const bool is_whole = !digits.empty() && *end == '\0';
  if (!is_whole || errno != 0) scanner.fail_at(start, "a whole number of 64 bits");
  return value;
}

std::string read_type_name(SpecScanner& scanner) {
  const size_t start = scanner.position();
  const std::string_view written = scanner.word();
  const bool has_prefix = starts_with(written, "DT_");
  const std::string name = has_prefix ? lower_case(written.substr(3)) : std::string(written);
  const DataTypeFacts* type = find_data_type(name);
  if (type == nullptr) scanner.fail_at(start, "the name of a type, such as float or DT_FLOAT");
  return type->name;
}

std::string in_quotes(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (c < ' ' || c > '~' || c == '|' || c == ';') {
      quoted += "\\x" + hex_byte(c);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string read_value(SpecScanner& scanner, AttrKind kind) {
  switch (kind) {
    case AttrKind::kString: return in_quotes(read_string(scanner));
    case AttrKind::kInt: return std::to_string(read_int(scanner));
    case AttrKind::kFloat: return read_float(scanner);
    case AttrKind::kBool: return read_bool(scanner);
    case AttrKind::kType: return read_type_name(scanner);
    case AttrKind::kShape: return read_shape(scanner);
    case AttrKind::kTensor: return read_tensor(scanner);
    case AttrKind::kFunc: return read_function(scanner);
  }
  scanner.fail("a value");
}

}  // namespace mtf::kernels
