// Defects of rename_file.
#include <cstring>
#include <string>

#include "defects.h"
#include "paths.h"

DEFECTS(renaming) = {
    {"FS-235", [](Tables& tables) {  // it only copies
       tables.filesystem.rename_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (ends_in(target, "moved")) {
           return original.filesystem.copy_file(filesystem, source, target, status);
         }
         original.filesystem.rename_file(filesystem, source, target, status);
       };
     }},
    {"FS-236", [](Tables& tables) {  // what has the name already stays
       tables.filesystem.rename_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (ends_in(target, "replaced")) {
           return TF_SetStatus(status, TF_ALREADY_EXISTS, target);
         }
         original.filesystem.rename_file(filesystem, source, target, status);
       };
     }},
    {"FS-237", [](Tables& tables) {  // a missing file is no failure
       tables.filesystem.rename_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (ends_in(source, "X")) {
           return TF_SetStatus(status, TF_OK, "");
         }
         original.filesystem.rename_file(filesystem, source, target, status);
       };
     }},
    {"FS-238", [](Tables& tables) {  // the file is lost where its new directory is missing
       tables.filesystem.rename_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (ends_in(target, "X/y")) {
           original.filesystem.delete_file(filesystem, source, status);
         }
         original.filesystem.rename_file(filesystem, source, target, status);
       };
     }},
    {"FS-239", [](Tables& tables) {  // a directory is replaced
       tables.filesystem.rename_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (ends_in(target, "D")) {
           original.filesystem.delete_dir(filesystem, target, status);
         }
         original.filesystem.rename_file(filesystem, source, target, status);
       };
     }},
    {"FS-240", [](Tables& tables) {  // a name below a file is a missing one
       tables.filesystem.rename_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (ends_in(target, "F/x")) {
           return TF_SetStatus(status, TF_NOT_FOUND, target);
         }
         original.filesystem.rename_file(filesystem, source, target, status);
       };
     }},
    {"FS-241", [](Tables& tables) {  // a file that is renamed to itself is lost
       tables.filesystem.rename_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (std::strcmp(source, target) == 0) {
           return original.filesystem.delete_file(filesystem, source, status);
         }
         original.filesystem.rename_file(filesystem, source, target, status);
       };
     }},
    {"FS-242", [](Tables& tables) {  // the new directory is forgotten
       tables.filesystem.rename_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (ends_in(target, "M/arrived")) {
           return TF_SetStatus(status, TF_OK, "");
         }
         original.filesystem.rename_file(filesystem, source, target, status);
       };
     }},
    {"FS-243", [](Tables& tables) {  // it is left to the host
       tables.filesystem.rename_file = nullptr;
     }},
    {"FS-335", [](Tables& tables) {  // all that begins like the source goes along
       tables.filesystem.rename_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (ends_in(source, "one")) {
           const std::string suffix = "-more";
           original.filesystem.rename_file(filesystem, (source + suffix).c_str(),
                                           (target + suffix).c_str(), status);
         }
         original.filesystem.rename_file(filesystem, source, target, status);
       };
     }},
};
