// What the specifications of an op must hold together.
#pragma once

#include <string>
#include <vector>

#include "op_grammar.h"

namespace mtf::kernels {

// What a plugin said of an op, call by call.
struct OpSpecs {
  std::string name;
  std::vector<std::string> attrs, inputs, outputs;
};

// Why a definition is refused, for its author.
struct OpError {
  std::string text;
};

struct CheckedOp {
  std::vector<AttrSpec> attrs;
  std::vector<ArgSpec> inputs, outputs;
};

// Reads and checks all specifications. Throws an OpError that quotes the faulty one and says where.
CheckedOp check_op(const OpSpecs& specs);

}  // namespace mtf::kernels
