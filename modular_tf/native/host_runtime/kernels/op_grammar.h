// The specifications by which a plugin defines an op.
#pragma once

#include <string>
#include <vector>

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

// The specifications as `attrs|inputs|outputs`, each list separated by semicolons. Throws an OpError
// that quotes the faulty one and says where.
std::string canonical_specs(const OpSpecs& specs);

}  // namespace mtf::kernels
