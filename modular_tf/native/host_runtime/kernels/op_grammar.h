// The grammar of specifications: "T: {float, int32} = DT_FLOAT" of attributes, "values: N * T" of
// arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attr_values.h"

namespace mtf::kernels {

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

// What a specification says, whatever the others of its op say. Throws SpecError.
AttrSpec read_attr(std::string_view spec);
ArgSpec read_arg(std::string_view spec);

// The position of the first byte that no op's name has; the length of `name` where the end is
// missing; nothing for a name that is right.
std::optional<size_t> fault_of_op_name(std::string_view name);

std::string canonical_text(const AttrSpec& attr);
std::string canonical_text(const ArgSpec& arg);

}  // namespace mtf::kernels
