// Values of attributes, as specifications write them, read into their canonical texts.
//
// Equal values have equal texts: `1` and `0x1` are "1", `'a'` and `"\141"` are "\"a\"", DT_FLOAT
// and float are "float".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "spec_scanner.h"

namespace mtf::kernels {

enum class AttrKind : uint8_t { kString, kInt, kFloat, kBool, kType, kShape, kTensor, kFunc };

// One value of a kind; not a list. Throws SpecError.
std::string read_value(SpecScanner& scanner, AttrKind kind);
int64_t read_int(SpecScanner& scanner);
std::string read_type_name(SpecScanner& scanner);

// In double quotes; what is neither printable nor safe between separators is written as \xNN.
std::string in_quotes(std::string_view text);

}  // namespace mtf::kernels
