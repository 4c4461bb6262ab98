#include "options.h"

namespace ram {
namespace {

constexpr int64_t kBiggestBlock = int64_t{1} << 30;

OptionValue number(int64_t value) { return {value, 0, {}}; }
OptionValue real(double value) { return {0, value, {}}; }
OptionValue bytes(std::string value) { return {0, 0, std::move(value)}; }

const std::array<OptionKind, 4> kKinds{{
    {"capacity_bytes",
     "Bytes that all files may hold together; appends and copies beyond it fail. 0: no limit.",
     false, TF_Filesystem_Option_Type_Int,
     [](const Account& account) { return number(account.capacity_bytes); },
     [](const OptionValue& value) { return value.number >= 0; },
     [](Account& account, const OptionValue& value) { account.capacity_bytes = value.number; }},
    {"block_bytes",
     "A file gets its memory in multiples of so many bytes. 1 to 1073741824.",
     true, TF_Filesystem_Option_Type_Int,
     [](const Account& account) { return number(account.block_bytes); },
     [](const OptionValue& value) { return value.number >= 1 && value.number <= kBiggestBlock; },
     [](Account& account, const OptionValue& value) { account.block_bytes = value.number; }},
    {"growth_factor",
     "A file that outgrows its memory gets so many times as much. 1.0 to 16.0.",
     true, TF_Filesystem_Option_Type_Real,
     [](const Account& account) { return real(account.growth_factor); },
     [](const OptionValue& value) { return value.real >= 1.0 && value.real <= 16.0; },
     [](Account& account, const OptionValue& value) { account.growth_factor = value.real; }},
    {"label",
     "Text put in front of every error message, to tell instances apart.",
     false, TF_Filesystem_Option_Type_Buffer,
     [](const Account& account) { return bytes(account.label()); },
     [](const OptionValue&) { return true; },
     [](Account& account, const OptionValue& value) { account.set_label(value.bytes); }},
}};

bool has_one_value(const OptionKind& kind, const TF_Filesystem_Option& option) {
  const TF_Filesystem_Option_Value* value = option.value;
  return value != nullptr && value->type_tag == kind.type && value->num_values == 1 &&
         value->values != nullptr;
}

// False when the buffer makes no sense.
bool take(TF_Filesystem_Option_Type type, const TF_Filesystem_Option_Value_Union& from,
          OptionValue& value) {
  if (type == TF_Filesystem_Option_Type_Int) {
    value.number = from.int_val;
  } else if (type == TF_Filesystem_Option_Type_Real) {
    value.real = from.real_val;
  } else {
    const auto& buffer = from.buffer_val;
    if (buffer.buf_length < 0 || (buffer.buf == nullptr && buffer.buf_length > 0)) return false;
    value.bytes.assign(buffer.buf == nullptr ? "" : buffer.buf,
                       static_cast<size_t>(buffer.buf_length));
  }
  return true;
}

}  // namespace

const std::array<OptionKind, 4>& option_kinds() { return kKinds; }

const OptionKind* find_option_kind(std::string_view name) {
  for (const OptionKind& kind : kKinds) {
    if (name == kind.name) return &kind;
  }
  return nullptr;
}

Fault parse(const OptionKind& kind, const TF_Filesystem_Option& option, OptionValue& value) {
  if (!has_one_value(kind, option)) return Fault::kWrongType;
  const bool sensible = take(kind.type, option.value->values[0], value);
  return sensible && kind.allowed(value) ? Fault::kNone : Fault::kBadValue;
}

}  // namespace ram
