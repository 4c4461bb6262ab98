// Defects of what the plugin does to memory.
#include <cstring>

#include "defects.h"

namespace {

// Ends in a name of so many letters n, as the check makes them.
bool has_name_of_length(const char* path, size_t length) {
  const char* slash = std::strrchr(path, '/');
  return slash != nullptr && std::strspn(slash + 1, "n") == length && slash[1 + length] == '\0';
}

}  // namespace

DEFECTS(memory) = {
    {"FS-329", [](Tables& tables) {  // a slash is put behind the caller's path
       tables.filesystem.path_exists = [](const TF_Filesystem* filesystem, const char* path,
                                          TF_Status* status) {
         original.filesystem.path_exists(filesystem, path, status);
         if (!has_name_of_length(path, 17)) return;
         char* end = const_cast<char*>(path) + std::strlen(path);
         end[0] = '/';
         end[1] = '\0';
       };
     }},
};
