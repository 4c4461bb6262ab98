// The list of the process's op definitions, which only grows.
#pragma once

#include <string>
#include <string_view>

#include "op_definition.h"

namespace mtf::kernels {

struct OpDefinition {
  std::string name;
  std::string line;  // canonical
  mtf_shape_function shape_function = nullptr;
  bool is_stateful = false;
};

enum class Added { kYes, kSameIsThere, kOtherIsThere, kNoRoom };

// Adds a definition unless its name is taken. May throw std::bad_alloc. [any thread]
Added add_op_definition(OpDefinition definition);

// NULL where no op of that name is registered. [any thread]
const OpDefinition* find_op_definition(std::string_view name) noexcept;

}  // namespace mtf::kernels
