#include "op_grammar.h"

#include <algorithm>

#include "data_types.h"

namespace mtf::kernels {
namespace {

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

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_lower_case(char c) { return !(c >= 'A' && c <= 'Z'); }

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
  const bool is_lower = std::all_of(name.begin(), name.end(), is_lower_case);
  if (name.empty() || !is_letter(name[0]) || !is_lower) {
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

bool take_list(SpecScanner& scanner) {
  SpecScanner ahead = scanner;
  if (ahead.word() != "list" || !ahead.take("(")) return false;
  scanner = ahead;
  return true;
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

bool take_ref(SpecScanner& scanner) {
  SpecScanner ahead = scanner;
  if (ahead.word() != "Ref" || !ahead.take("(")) return false;
  scanner = ahead;
  return true;
}

}  // namespace

AttrSpec read_attr(std::string_view spec) {
  SpecScanner scanner(spec);
  AttrSpec attr;
  attr.name = read_attr_name(scanner);
  scanner.expect(":");
  attr.is_list = take_list(scanner);
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
  arg.is_ref = take_ref(scanner);
  read_arg_type(scanner, arg);
  if (arg.is_ref) scanner.expect(")");
  scanner.expect_end();
  if (const DataTypeFacts* type = find_data_type(arg.type)) arg.type = type->name;
  return arg;
}

std::optional<size_t> fault_of_op_name(std::string_view name) {
  // Some of TensorFlow's own have two.
  size_t at = std::min(name.find_first_not_of('_'), name.size());
  for (;;) {
    if (at == name.size() || !is_letter(name[at]) || is_lower_case(name[at])) return at;
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

}  // namespace mtf::kernels
