#include "op_validation.h"

#include <algorithm>
#include <set>
#include <utility>

#include "data_types.h"

namespace mtf::kernels {
namespace {

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

}  // namespace

CheckedOp check_op(const OpSpecs& specs) { return Checker(specs).check(); }

}  // namespace mtf::kernels
