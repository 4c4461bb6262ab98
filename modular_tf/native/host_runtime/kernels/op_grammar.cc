// The grammar of specifications: "T: {float, int32} = DT_FLOAT" of attributes, "values: N * T" of
// arguments; and what those of one op must hold together.
//
// Equal values have equal canonical texts: `1` and `0x1` are "1", `'a'` and `"\141"` are "\"a\"",
// DT_FLOAT and float are "float".
#include "op_grammar.h"

#include <locale.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <locale>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "tensor.h"

namespace mtf::kernels {
namespace {

constexpr size_t kMostShown = 40;

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Not <cctype>, which asks the locale.
bool is_upper_case(char c) { return c >= 'A' && c <= 'Z'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || is_upper_case(c); }
bool is_word_part(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; }
bool is_token_part(char c) { return is_word_part(c) || c == '.' || c == '-' || c == '+'; }

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 16;
}

// What is wrong with a specification, and at which of its bytes.
struct SpecError {
  size_t position;
  std::string text;
};

// Reads the text of a specification from left to right. Blanks before what is read are skipped. What
// fails throws a SpecError.
class SpecScanner {
 public:
  explicit SpecScanner(std::string_view text) : text_(text) {}

  // Of the next byte that is no blank.
  size_t position() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
    return at_;
  }
  bool at_end() { return position() == text_.size(); }
  // The next byte, without reading it; NUL at the end.
  char next() { return at_end() ? '\0' : text_[at_]; }
  bool is_quote() { return next() == '"' || next() == '\''; }
  bool take(std::string_view literal) {
    if (text_.compare(position(), literal.size(), literal) != 0) return false;
    at_ += literal.size();
    return true;
  }
  // Takes `word(`, or nothing.
  bool take_call(std::string_view expected) {
    SpecScanner ahead = *this;
    if (ahead.word() != expected || !ahead.take("(")) return false;
    *this = ahead;
    return true;
  }
  void expect(std::string_view literal) {
    if (!take(literal)) fail("'" + std::string(literal) + "'");
  }
  void expect_end() {
    if (!at_end()) fail("the end");
  }
  // Letters, digits, underscores: as many as follow, perhaps none.
  std::string_view word() { return take_while(is_word_part); }
  // Bytes up to one that ends a number or a name: a blank, quote, bracket or separator.
  std::string_view token() { return take_while(is_token_part); }
  // What stands in quotes, escapes decoded.
  std::string quoted() {
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
  // The text from `start` to here.
  std::string_view since(size_t start) const { return text_.substr(start, at_ - start); }

  [[noreturn]] void fail(std::string_view expected) { fail_at(position(), expected); }
  [[noreturn]] void fail_at(size_t position, std::string_view expected) const {
    const std::string_view rest = text_.substr(position, kMostShown);
    const std::string found = rest.empty() ? "the end" : "'" + std::string(rest) + "'";
    throw SpecError{position, "expected " + std::string(expected) + ", found " + found};
  }

 private:
  std::string_view take_while(bool (*holds)(char)) {
    const size_t start = position();
    while (at_ < text_.size() && holds(text_[at_])) ++at_;
    return since(start);
  }

  // What a backslash that was read begins.
  char escaped() {
    static constexpr std::string_view kLetters = "abfnrtv\\'\"?", kMeanings = "\a\b\f\n\r\t\v\\'\"?";
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (digit_of(c) < 8) return number(8, 3);
    ++at_;
    if (c == 'x' || c == 'X') return number(16, 2);
    const size_t found = c == '\0' ? std::string_view::npos : kLetters.find(c);
    if (found == std::string_view::npos) fail_at(at_ - 2, "an escape of C");
    return kMeanings[found];
  }

  char number(int base, size_t most_digits) {
    const size_t start = at_;
    int value = 0;
    while (at_ < text_.size() && at_ - start < most_digits && digit_of(text_[at_]) < base) {
      value = value * base + digit_of(text_[at_++]);
    }
    if (at_ == start || value > 255) fail_at(start, "a byte's number");
    return static_cast<char>(value);
  }

  std::string_view text_;
  size_t at_ = 0;
};

// -- values of attributes, read into their canonical texts --

enum class AttrKind : uint8_t { kString, kInt, kFloat, kBool, kType, kShape, kTensor, kFunc };

// Messages in messages: specifications of ops have three levels.
constexpr int kMostLevels = 32;
constexpr int kFloatDigits = 9;  // tell all floats apart

bool starts_with(std::string_view text, std::string_view start) {
  return text.compare(0, start.size(), start) == 0;
}

std::string lower_case(std::string_view text) {
  std::string changed(text);
  for (char& c : changed) c = is_upper_case(c) ? static_cast<char>(c - 'A' + 'a') : c;
  return changed;
}

std::string hex_byte(char c) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return {kDigits[byte >> 4], kDigits[byte & 15]};
}

// In double quotes; what is neither printable nor safe between separators is written as \xNN.
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

int base_of(std::string_view digits) {
  if (starts_with(digits, "0x") || starts_with(digits, "0X")) return 16;
  return digits.size() > 1 && digits[0] == '0' ? 8 : 10;
}

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

// One value of a kind; not a list.
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

// -- specifications --

struct AttrSpec {
  std::string name;
  AttrKind kind = AttrKind::kString;
  bool is_list = false;
  std::vector<std::string> allowed;  // canonical texts; empty: all
  std::optional<int64_t> minimum;    // of an int, or of the length of a list
  std::optional<std::vector<std::string>> default_values;  // one, where it is no list
  size_t default_at = 0;             // where the default stands
};

struct ArgSpec {
  std::string name;
  std::string count;  // the attribute that counts the tensors; empty: one
  std::string type;   // a type, or the attribute that says which
  bool is_ref = false;
  size_t count_at = 0, type_at = 0;  // where they stand
};

constexpr std::string_view kKindNames[] = {"string", "int",   "float",  "bool",
                                           "type",   "shape", "tensor", "func"};

// The types that a word stands for, in the order in which definitions list them; else nothing.
std::string_view type_set(std::string_view word) {
  if (word == "numbertype" || word == "numerictype") {
    return "float,double,int32,uint8,int16,int8,complex64,int64,qint8,quint8,qint32,bfloat16,"
           "qint16,quint16,uint16,complex128,half,uint32,uint64";
  }
  if (word == "realnumbertype" || word == "realnumerictype") {
    return "float,double,int32,uint8,int16,int8,int64,bfloat16,uint16,half,uint32,uint64";
  }
  return word == "quantizedtype" ? "qint8,quint8,qint32,qint16,quint16" : "";
}

void add_types(std::string_view set, std::vector<std::string>& types) {
  SpecScanner scanner(set);
  do {
    types.emplace_back(scanner.word());
  } while (scanner.take(","));
}

std::string read_attr_name(SpecScanner& scanner) {
  const size_t start = scanner.position();
  const std::string_view name = scanner.word();
  if (name.empty() || !is_letter(name[0])) {
    scanner.fail_at(start, "the name of an attribute, which begins with a letter");
  }
  if (find_data_type(name) != nullptr) scanner.fail_at(start, "a name that no type has");
  return std::string(name);
}

std::string read_arg_name(SpecScanner& scanner) {
  const size_t start = scanner.position();
  const std::string_view name = scanner.word();
  const bool has_upper = std::any_of(name.begin(), name.end(), is_upper_case);
  if (name.empty() || !is_letter(name[0]) || has_upper) {
    scanner.fail_at(start, "the name of an argument, which is in lower case");
  }
  return std::string(name);
}

void read_types(SpecScanner& scanner, std::vector<std::string>& types) {
  SpecScanner ahead = scanner;
  const std::string_view set = type_set(ahead.word());
  if (set.empty()) return types.push_back(read_type_name(scanner));
  scanner = ahead;
  add_types(set, types);
}

// What follows the opening brace.
void read_allowed(SpecScanner& scanner, AttrSpec& attr) {
  attr.kind = scanner.is_quote() ? AttrKind::kString : AttrKind::kType;
  do {
    if (!attr.allowed.empty() && scanner.next() == '}') break;  // a comma may come last
    if (attr.kind == AttrKind::kString) {
      attr.allowed.push_back(read_value(scanner, attr.kind));
    } else {
      read_types(scanner, attr.allowed);
    }
  } while (scanner.take(","));
  scanner.expect("}");
}

void read_kind(SpecScanner& scanner, AttrSpec& attr) {
  if (scanner.take("{")) return read_allowed(scanner, attr);
  const size_t start = scanner.position();
  const std::string_view word = scanner.word();
  if (const std::string_view set = type_set(word); !set.empty()) {
    attr.kind = AttrKind::kType;
    return add_types(set, attr.allowed);
  }
  const auto* found = std::find(std::begin(kKindNames), std::end(kKindNames), word);
  if (found == std::end(kKindNames)) {
    scanner.fail_at(start, "the type of an attribute, such as int, type or {float, int32}");
  }
  attr.kind = static_cast<AttrKind>(found - std::begin(kKindNames));
}

void read_minimum(SpecScanner& scanner, AttrSpec& attr) {
  const size_t start = scanner.position();
  if (!scanner.take(">=")) return;
  if (!attr.is_list && attr.kind != AttrKind::kInt) {
    scanner.fail_at(start, "no minimum, which only an int and a list have");
  }
  const size_t number_at = scanner.position();
  attr.minimum = read_int(scanner);
  if (attr.is_list && *attr.minimum < 0) {
    scanner.fail_at(number_at, "a length of at least 0");
  }
}

std::string read_default_value(SpecScanner& scanner, AttrKind kind) {
  if (kind != AttrKind::kType || !scanner.is_quote()) return read_value(scanner, kind);
  const size_t start = scanner.position();
  const std::string name = scanner.quoted();
  SpecScanner quoted(name);
  try {
    const std::string found = read_type_name(quoted);
    quoted.expect_end();
    return found;
  } catch (const SpecError&) {
    scanner.fail_at(start, "the name of a type, such as float or DT_FLOAT");
  }
}

void read_default(SpecScanner& scanner, AttrSpec& attr) {
  if (!scanner.take("=")) return;
  attr.default_at = scanner.position();
  auto& values = attr.default_values.emplace();
  if (!attr.is_list) return values.push_back(read_default_value(scanner, attr.kind));
  scanner.expect("[");
  if (scanner.take("]")) return;
  do {
    values.push_back(read_default_value(scanner, attr.kind));
  } while (scanner.take(","));
  scanner.expect("]");
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ",") + text;
  return all;
}

// `N * T`, `T`, or a type.
void read_arg_type(SpecScanner& scanner, ArgSpec& arg) {
  const auto read_word = [&](size_t& at) {
    at = scanner.position();
    const std::string_view word = scanner.word();
    if (word.empty()) scanner.fail_at(at, "a type or the name of an attribute");
    return std::string(word);
  };
  arg.type = read_word(arg.type_at);
  if (!scanner.take("*")) return;
  arg.count = arg.type;
  arg.count_at = arg.type_at;
  arg.type = read_word(arg.type_at);
}

// What a specification says, whatever the others of its op say.
AttrSpec read_attr(std::string_view spec) {
  SpecScanner scanner(spec);
  AttrSpec attr;
  attr.name = read_attr_name(scanner);
  scanner.expect(":");
  attr.is_list = scanner.take_call("list");
  read_kind(scanner, attr);
  if (attr.is_list) scanner.expect(")");
  read_minimum(scanner, attr);
  read_default(scanner, attr);
  scanner.expect_end();
  return attr;
}

ArgSpec read_arg(std::string_view spec) {
  SpecScanner scanner(spec);
  ArgSpec arg;
  arg.name = read_arg_name(scanner);
  scanner.expect(":");
  arg.is_ref = scanner.take_call("Ref");
  read_arg_type(scanner, arg);
  if (arg.is_ref) scanner.expect(")");
  scanner.expect_end();
  if (const DataTypeFacts* type = find_data_type(arg.type)) arg.type = type->name;
  return arg;
}

// The position of the first byte that no op's name has; the length of `name` where the end is
// missing; nothing for a name that is right.
std::optional<size_t> fault_of_op_name(std::string_view name) {
  // Some of TensorFlow's own have two.
  size_t at = std::min(name.find_first_not_of('_'), name.size());
  for (;;) {
    if (at == name.size() || !is_upper_case(name[at])) return at;
    SpecScanner rest(name.substr(at));
    at += rest.word().size();
    if (at == name.size()) return std::nullopt;
    if (name[at++] != '>') return at - 1;  // between a namespace and a name
  }
}

std::string canonical_text(const AttrSpec& attr) {
  std::string text(kKindNames[static_cast<int>(attr.kind)]);
  if (!attr.allowed.empty()) text += "{" + joined(attr.allowed) + "}";
  if (attr.is_list) text = "list(" + text + ")";
  text.insert(0, attr.name + ":");
  if (attr.minimum) text += ">=" + std::to_string(*attr.minimum);
  if (!attr.default_values) return text;
  const std::string values = joined(*attr.default_values);
  return text + "=" + (attr.is_list ? "[" + values + "]" : values);
}

std::string canonical_text(const ArgSpec& arg) {
  std::string text = arg.count.empty() ? arg.type : arg.count + "*" + arg.type;
  if (arg.is_ref) text = "Ref(" + text + ")";
  return arg.name + ":" + text;
}

// -- the specifications of one op --

struct CheckedOp {
  std::vector<AttrSpec> attrs;
  std::vector<ArgSpec> inputs, outputs;
};

constexpr size_t kMostQuoted = 200;

std::string quoted_start(const std::string& text) {
  return in_quotes(text.substr(0, kMostQuoted)) + (text.size() > kMostQuoted ? "..." : "");
}

// An op while it is checked: the names that are taken, and the specification that is looked at.
class Checker {
 public:
  explicit Checker(const OpSpecs& specs) : specs_(specs) {}

  CheckedOp check() {
    check_name();
    checked_.attrs = read_all<AttrSpec>("attribute", specs_.attrs, read_attr);
    checked_.inputs = read_args("input", specs_.inputs);
    checked_.outputs = read_args("output", specs_.outputs);
    for (size_t i = 0; i < checked_.attrs.size(); ++i) {
      check_spec("attribute", specs_.attrs[i], [&] { check_default(checked_.attrs[i]); });
    }
    return std::move(checked_);
  }

 private:
  void check_name() const {
    const auto fault = fault_of_op_name(specs_.name);
    if (!fault) return;
    throw OpError{"op " + quoted_start(specs_.name) + ", character " + std::to_string(*fault + 1) +
                  ": expected a name in CamelCase, such as MatMul or _FusedMatMul"};
  }

  // Runs `check()`, which may throw a SpecError of that specification.
  template <class Check>
  void check_spec(const char* what, const std::string& spec, Check check) const {
    try {
      check();
    } catch (const SpecError& error) {
      throw OpError{"op " + specs_.name + ", " + what + " " + quoted_start(spec) + ", character " +
                    std::to_string(error.position + 1) + ": " + error.text};
    }
  }

  template <class Spec, class Read>
  std::vector<Spec> read_all(const char* what, const std::vector<std::string>& texts, Read read) {
    std::vector<Spec> all;
    for (const std::string& text : texts) {
      check_spec(what, text, [&] {
        all.push_back(read(text));
        take_name(text, all.back().name);
      });
    }
    return all;
  }

  std::vector<ArgSpec> read_args(const char* what, const std::vector<std::string>& texts) {
    auto args = read_all<ArgSpec>(what, texts, read_arg);
    for (size_t i = 0; i < args.size(); ++i) {
      check_spec(what, texts[i], [&] { bind_to_attrs(args[i], texts[i]); });
    }
    return args;
  }

  void take_name(const std::string& text, const std::string& name) {
    if (names_.insert(name).second) return;
    SpecScanner(text).fail_at(text.find(name), "a name that is not taken in this op");
  }

  AttrSpec* find_attr(const std::string& name) {
    const auto found = std::find_if(checked_.attrs.begin(), checked_.attrs.end(),
                                    [&](const AttrSpec& attr) { return attr.name == name; });
    return found == checked_.attrs.end() ? nullptr : &*found;
  }

  void bind_to_attrs(const ArgSpec& arg, const std::string& text) {
    const SpecScanner scanner(text);
    if (!arg.count.empty()) bind_count(arg, scanner);
    if (find_data_type(arg.type) != nullptr) return;
    AttrSpec* attr = find_attr(arg.type);
    if (attr == nullptr) scanner.fail_at(arg.type_at, "a type or an attribute of this op");
    if (attr->kind != AttrKind::kType) {
      scanner.fail_at(arg.type_at, "an attribute that is a type or a list of types");
    }
    if (!attr->is_list) return;
    if (!arg.count.empty()) scanner.fail_at(arg.type_at, "one type behind a count");
    give_minimum(*attr);
  }

  void bind_count(const ArgSpec& arg, const SpecScanner& scanner) {
    AttrSpec* attr = find_attr(arg.count);
    if (attr == nullptr) scanner.fail_at(arg.count_at, "an attribute of this op");
    if (attr->kind != AttrKind::kInt || attr->is_list) {
      scanner.fail_at(arg.count_at, "an attribute that is an int");
    }
    give_minimum(*attr);
  }

  // What counts tensors or lists their types is at least 1, unless it says otherwise.
  static void give_minimum(AttrSpec& attr) {
    if (!attr.minimum) attr.minimum = 1;
  }

  void check_default(const AttrSpec& attr) const {
    if (!attr.default_values) return;
    const SpecScanner scanner(spec_of(attr));
    check_minimum(attr, scanner);
    for (const std::string& value : *attr.default_values) {
      const auto& allowed = attr.allowed;
      if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
        scanner.fail_at(attr.default_at, "a default that is allowed");
      }
    }
  }

  static void check_minimum(const AttrSpec& attr, const SpecScanner& scanner) {
    if (!attr.minimum) return;
    const auto& values = *attr.default_values;
    const auto length = static_cast<int64_t>(values.size());
    const int64_t found = attr.is_list ? length : std::stoll(values[0]);
    if (found < *attr.minimum) {
      scanner.fail_at(attr.default_at, std::string("a default ") +
                                           (attr.is_list ? "of a length " : "") + "of at least " +
                                           std::to_string(*attr.minimum));
    }
  }

  const std::string& spec_of(const AttrSpec& attr) const {
    return specs_.attrs[static_cast<size_t>(&attr - checked_.attrs.data())];
  }

  const OpSpecs& specs_;
  CheckedOp checked_;
  std::set<std::string> names_;
};

template <class Spec>
std::string list_of(const std::vector<Spec>& specs) {
  std::string all;
  for (const Spec& spec : specs) all += (all.empty() ? "" : ";") + canonical_text(spec);
  return all;
}

}  // namespace

std::string canonical_specs(const OpSpecs& specs) {
  const CheckedOp op = Checker(specs).check();
  return list_of(op.attrs) + "|" + list_of(op.inputs) + "|" + list_of(op.outputs);
}

}  // namespace mtf::kernels
