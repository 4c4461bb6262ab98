// TF_CPP_VMODULE: VLOG levels for single source files.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace mtf {

using VmoduleLevels = std::map<std::string, int, std::less<>>;

// Reads "module=level,module=level"; entries of another shape are skipped.
VmoduleLevels parse_vmodule(std::string_view text);

// The name by which the variable knows a source file: no folders, nothing from the first dot on.
std::string_view module_of(std::string_view file_name);

}  // namespace mtf
