// From URIs to the names on the way from the root.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ram {

// The names in `path`: "." and empty ones dropped, ".." resolved and never above the root.
// They point into `path`.
std::vector<std::string_view> components(std::string_view path);

// The canonical path of a URI: "ram://a//b/../c", "ram:///a/c" and "/a/c" all become "/a/c". What
// stands in the host's place is the first name, so that ram://a and ram://b differ.
std::string canonical_path(std::string_view uri);

}  // namespace ram
