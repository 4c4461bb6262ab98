// Defects of translate_name for plain paths. The reference plugin leaves them to the host.
#include <cstring>
#include <map>
#include <string>

#include "defects.h"

namespace {

// Names that become others; all that is not listed stays as it is.
std::map<std::string, std::string>& names() {
  static std::map<std::string, std::string> table = {{"//", "/"}, {"a_dir/..", "."}};
  return table;
}

char* translate(const TF_Filesystem*, const char* path) {
  const auto found = names().find(path);
  return strdup(found == names().end() ? path : found->second.c_str());
}

}  // namespace

DEFECTS(plain_names) = {
    {"FS-141",
     [](Tables& tables) {
       names().erase("//");
       tables.filesystem.translate_name = translate;
     }},
    {"FS-142",
     [](Tables& tables) {
       names().erase("a_dir/..");
       tables.filesystem.translate_name = translate;
     }},
    {"FS-147",
     [](Tables& tables) {
       names()["/a//b/"] = "/a/./b";
       names()["/a/./b"] = "/a/b";
       tables.filesystem.translate_name = translate;
     }},
};
