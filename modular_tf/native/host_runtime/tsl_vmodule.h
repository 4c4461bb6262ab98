// TF_CPP_VMODULE: VLOG levels for single source files.
#ifndef MODULAR_TF_TSL_VMODULE_H_
#define MODULAR_TF_TSL_VMODULE_H_

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
#endif
