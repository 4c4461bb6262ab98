// The configuration operations: options out to the host, and in from it.
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "fork_gate.h"
#include "options.h"
#include "report.h"
#include "slots.h"

namespace ram {
namespace {

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
  const auto& kinds = option_kinds();
  const Fault fault = caught([&] {
    *options = exported(kinds.data(), kinds.size(), *instance_of(filesystem).account);
    *num_options = static_cast<int>(kinds.size());
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
