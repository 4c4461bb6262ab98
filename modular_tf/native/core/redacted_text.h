// Secrets in URIs, which no trace shows: the rules of modular_tf/redaction.py, for code that cannot
// ask Python. A test compares the two.
#pragma once

#include <string>

namespace mtf {

// `is_cut`: the text may go on; what may be the beginning of a secret is hidden too.
std::string redacted_text(const char* text, bool is_cut);

}  // namespace mtf
