// Defects that names outside of what there is bring out.
#include <cstring>
#include <stdexcept>

#include "defects.h"

DEFECTS(outside) = {
    {"FS-333", [](Tables& tables) {  // an exception leaves the plugin
       tables.filesystem.get_children = [](const TF_Filesystem* filesystem, const char* path,
                                           char*** entries, TF_Status* status) {
         if (std::strstr(path, "-nowhere/") != nullptr) throw std::runtime_error("no container");
         return original.filesystem.get_children(filesystem, path, entries, status);
       };
     }},
};
