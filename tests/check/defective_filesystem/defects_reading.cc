// Defects of readers.
#include <cstring>

#include "defects.h"

DEFECTS(reading) = {
    {"FS-169", [](Tables& tables) {  // the message of a failed open does not name the path
       tables.filesystem.new_random_access_file =
           [](const TF_Filesystem* filesystem, const char* path, TF_RandomAccessFile* file,
              TF_Status* status) {
             original.filesystem.new_random_access_file(filesystem, path, file, status);
             const TF_Code code = TF_GetCode(status);
             if (code != TF_OK) TF_SetStatus(status, code, "no luck");
           };
     }},
};
