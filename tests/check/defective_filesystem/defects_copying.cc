// Defects of copy_file.
#include <cstring>

#include "contents.h"
#include "defects.h"
#include "paths.h"

DEFECTS(copying) = {
    {"FS-244", [](Tables& tables) {  // the copy is empty
       tables.filesystem.copy_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (ends_in(target, "copied")) {
           return overwrite(filesystem, target, "", status);
         }
         original.filesystem.copy_file(filesystem, source, target, status);
       };
     }},
    {"FS-245", [](Tables& tables) {  // what was longer stays so
       tables.filesystem.copy_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (ends_in(target, "longer")) {
           return overwrite(filesystem, target, "abcdthing longer", status);
         }
         original.filesystem.copy_file(filesystem, source, target, status);
       };
     }},
    {"FS-246", [](Tables& tables) {  // a copy of nothing appears
       tables.filesystem.copy_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (ends_in(target, "Y") && ends_in(source, "X")) {
           overwrite(filesystem, target, "", status);
         }
         original.filesystem.copy_file(filesystem, source, target, status);
       };
     }},
    {"FS-247", [](Tables& tables) {  // a copy of a directory appears
       tables.filesystem.copy_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (ends_in(source, "D")) {
           overwrite(filesystem, target, "", status);
           return TF_SetStatus(status, TF_FAILED_PRECONDITION, source);
         }
         original.filesystem.copy_file(filesystem, source, target, status);
       };
     }},
    {"FS-248", [](Tables& tables) {  // a directory is replaced
       tables.filesystem.copy_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (ends_in(target, "D")) {
           original.filesystem.delete_dir(filesystem, target, status);
         }
         original.filesystem.copy_file(filesystem, source, target, status);
       };
     }},
    {"FS-249", [](Tables& tables) {  // a name below a file is a missing one
       tables.filesystem.copy_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (ends_in(target, "F/x")) {
           return TF_SetStatus(status, TF_NOT_FOUND, target);
         }
         original.filesystem.copy_file(filesystem, source, target, status);
       };
     }},
    {"FS-250", [](Tables& tables) {  // a missing directory is called a file
       tables.filesystem.copy_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (ends_in(target, "X/y")) {
           return TF_SetStatus(status, TF_FAILED_PRECONDITION, target);
         }
         original.filesystem.copy_file(filesystem, source, target, status);
       };
     }},
    {"FS-251", [](Tables& tables) {  // an empty file is not copied
       tables.filesystem.copy_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (ends_in(target, "empty")) {
           return TF_SetStatus(status, TF_OK, "");
         }
         original.filesystem.copy_file(filesystem, source, target, status);
       };
     }},
    {"FS-252", [](Tables& tables) {  // a file that is copied onto itself is emptied
       tables.filesystem.copy_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (std::strcmp(source, target) == 0) {
           return overwrite(filesystem, target, "", status);
         }
         original.filesystem.copy_file(filesystem, source, target, status);
       };
     }},
    {"FS-253", [](Tables& tables) {  // a long copy is a byte too long
       tables.filesystem.copy_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (ends_in(target, "copied_long")) {
           original.filesystem.copy_file(filesystem, source, target, status);
           return lengthen(filesystem, target, status);
         }
         original.filesystem.copy_file(filesystem, source, target, status);
       };
     }},
    {"FS-254", [](Tables& tables) {  // a very long copy is a byte too long
       tables.filesystem.copy_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (ends_in(target, "beyond")) {
           original.filesystem.copy_file(filesystem, source, target, status);
           return lengthen(filesystem, target, status);
         }
         original.filesystem.copy_file(filesystem, source, target, status);
       };
     }},
    {"FS-255", [](Tables& tables) {  // a failure empties the target
       tables.filesystem.copy_file = [](const TF_Filesystem* filesystem, const char* source,
                                        const char* target, TF_Status* status) {
         if (ends_in(target, "kept")) {
           overwrite(filesystem, target, "", status);
         }
         original.filesystem.copy_file(filesystem, source, target, status);
       };
     }},
};
