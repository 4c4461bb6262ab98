// The options of the filesystem as a table: name, meaning, type, and how to read and set each.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "account.h"
#include "fault.h"
#include "modular_tf/filesystem.h"

namespace ram {

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

const std::array<OptionKind, 4>& option_kinds();

// NULL when there is no option of that name.
const OptionKind* find_option_kind(std::string_view name);

// Takes the value out of a caller's option and checks type and range; copies, keeps no pointer.
Fault parse(const OptionKind& kind, const TF_Filesystem_Option& option, OptionValue& value);

}  // namespace ram
