// The options of the filesystem as a table (name, meaning, type, and how to read and set each), and the
// configuration operations: options out to the host, and in from it.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "account.h"
#include "fork_gate.h"
#include "modular_tf/filesystem.h"
#include "slots.h"

namespace ram {
namespace {

// A value of one of the three types; the other two members mean nothing.
struct OptionValue {
  int64_t number = 0;
  double real = 0;
  std::string bytes;
};

struct OptionKind {
  const char* name;
  const char* description;
  bool per_file;  // a file keeps what was in force when it grew
  TF_Filesystem_Option_Type type;
  OptionValue (*read)(const Account& account);
  bool (*allowed)(const OptionValue& value);
  void (*write)(Account& account, const OptionValue& value);
};

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

// NULL when there is no option of that name.
const OptionKind* find_option_kind(std::string_view name) {
  for (const OptionKind& kind : kKinds) {
    if (name == kind.name) return &kind;
  }
  return nullptr;
}

// Takes the value out of a caller's option and checks type and range; copies, keeps no pointer.
Fault parse(const OptionKind& kind, const TF_Filesystem_Option& option, OptionValue& value) {
  if (!has_one_value(kind, option)) return Fault::kWrongType;
  const bool sensible = take(kind.type, option.value->values[0], value);
  return sensible && kind.allowed(value) ? Fault::kNone : Fault::kBadValue;
}

void say(const TF_Filesystem* filesystem, Fault fault, const char* subject, TF_Status* status) {
  report(fault, *instance_of(filesystem).account, subject, status);
}

// Zeroed memory that the host frees, piece by piece.
template <class T>
T* new_array(size_t count) {
  auto* memory = static_cast<T*>(std::calloc(count == 0 ? 1 : count, sizeof(T)));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

char* new_bytes(const char* bytes, size_t n) {
  auto* copy = new_array<char>(n + 1);  // a NUL behind it, for those who print it
  std::memcpy(copy, bytes, n);
  return copy;
}

void free_pieces(TF_Filesystem_Option& option, TF_Filesystem_Option_Type type) {
  std::free(option.name);
  std::free(option.description);
  if (option.value == nullptr) return;
  TF_Filesystem_Option_Value_Union* values = option.value->values;
  if (values != nullptr && type == TF_Filesystem_Option_Type_Buffer) {
    std::free(values->buffer_val.buf);
  }
  std::free(option.value->values);
  std::free(option.value);
}

void put(TF_Filesystem_Option_Type type, const OptionValue& value,
         TF_Filesystem_Option_Value_Union& to) {
  if (type == TF_Filesystem_Option_Type_Int) {
    to.int_val = value.number;
  } else if (type == TF_Filesystem_Option_Type_Real) {
    to.real_val = value.real;
  } else {
    to.buffer_val.buf = new_bytes(value.bytes.data(), value.bytes.size());
    to.buffer_val.buf_length = static_cast<int>(value.bytes.size());
  }
}

// Every pointer in it is an allocation of its own. On bad_alloc what was made is in `option`.
void fill(const OptionKind& kind, const Account& account, TF_Filesystem_Option& option) {
  option.name = new_bytes(kind.name, std::strlen(kind.name));
  option.description = new_bytes(kind.description, std::strlen(kind.description));
  option.per_file = kind.per_file ? 1 : 0;
  option.value = new_array<TF_Filesystem_Option_Value>(1);
  option.value->type_tag = kind.type;
  option.value->num_values = 1;
  option.value->values = new_array<TF_Filesystem_Option_Value_Union>(1);
  put(kind.type, kind.read(account), option.value->values[0]);
}

// An array of options, one per kind, for the host to free.
TF_Filesystem_Option* exported(const OptionKind* kinds, size_t count, const Account& account) {
  auto* options = new_array<TF_Filesystem_Option>(count);
  try {
    for (size_t i = 0; i < count; ++i) fill(kinds[i], account, options[i]);
  } catch (const std::bad_alloc&) {
    for (size_t i = 0; i < count; ++i) free_pieces(options[i], kinds[i].type);
    std::free(options);
    throw;
  }
  return options;
}

void get_configuration(const TF_Filesystem* filesystem, TF_Filesystem_Option** options,
                       int* num_options, TF_Status* status) {
  const Fault fault = caught([&] {
    *options = exported(kKinds.data(), kKinds.size(), *instance_of(filesystem).account);
    *num_options = static_cast<int>(kKinds.size());
    return Fault::kNone;
  });
  say(filesystem, fault, "configuration", status);
}

void get_option(const TF_Filesystem* filesystem, const char* key, TF_Filesystem_Option** option,
                TF_Status* status) {
  const Fault fault = caught([&] {
    const OptionKind* kind = find_option_kind(key);
    if (kind == nullptr) return Fault::kUnknownOption;
    *option = exported(kind, 1, *instance_of(filesystem).account);
    return Fault::kNone;
  });
  say(filesystem, fault, key, status);
}

using Change = std::pair<const OptionKind*, OptionValue>;

Fault plan(const TF_Filesystem_Option& option, std::vector<Change>& changes) {
  const OptionKind* kind = option.name == nullptr ? nullptr : find_option_kind(option.name);
  if (kind == nullptr) return Fault::kUnknownOption;
  changes.emplace_back(kind, OptionValue{});
  return parse(*kind, option, changes.back().second);
}

// All of them or none: the first bad option ends it before anything is set.
void set_configuration(const TF_Filesystem* filesystem, const TF_Filesystem_Option* options,
                       int num_options, TF_Status* status) {
  const char* subject = "configuration";
  const Fault fault = caught([&] {
    std::vector<Change> changes;
    for (int i = 0; i < num_options; ++i) {
      const Fault found = plan(options[i], changes);
      if (found == Fault::kNone) continue;
      if (options[i].name != nullptr) subject = options[i].name;
      return found;
    }
    Account& account = *instance_of(filesystem).account;
    for (const Change& change : changes) change.first->write(account, change.second);
    return Fault::kNone;
  });
  say(filesystem, fault, subject, status);
}

void set_option(const TF_Filesystem* filesystem, const TF_Filesystem_Option* option,
                TF_Status* status) {
  set_configuration(filesystem, option, 1, status);
}

}  // namespace

// get_filesystem_configuration_keys stays NULL: its `char** keys` cannot hand out an array, and
// the header does not say what it means instead. The names are in get_filesystem_configuration.
void fill_option_slots(TF_FilesystemOps& ops) {
  ops.get_filesystem_configuration = in_call<get_configuration>;
  ops.set_filesystem_configuration = in_call<set_configuration>;
  ops.get_filesystem_configuration_option = in_call<get_option>;
  ops.set_filesystem_configuration_option = in_call<set_option>;
}

}  // namespace ram
