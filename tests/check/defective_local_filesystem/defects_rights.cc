// Defects that show on a local disk only: of rights, and of links.
#include <unistd.h>

#include <string>

#include "../defective_filesystem/defects.h"

DEFECTS(rights) = {
    {"FS-191", [](Tables& tables) {  // a file that is not allowed fails with another code
       tables.filesystem.new_writable_file = [](const TF_Filesystem* filesystem, const char* path,
                                                TF_WritableFile* file, TF_Status* status) {
         original.filesystem.new_writable_file(filesystem, path, file, status);
         if (TF_GetCode(status) == TF_PERMISSION_DENIED) TF_SetStatus(status, TF_INTERNAL, path);
       };
     }},
    {"FS-232", [](Tables& tables) {  // what may not be deleted is not counted
       tables.filesystem.delete_recursively = [](const TF_Filesystem* filesystem, const char* path,
                                                 uint64_t* files, uint64_t* directories,
                                                 TF_Status* status) {
         original.filesystem.delete_recursively(filesystem, path, files, directories, status);
         if (TF_GetCode(status) == TF_PERMISSION_DENIED) *files = *directories = 0;
       };
     }},
    {"FS-234", [](Tables& tables) {  // deletes what is behind a link
       tables.filesystem.delete_recursively = [](const TF_Filesystem* filesystem, const char* path,
                                                 uint64_t* files, uint64_t* directories,
                                                 TF_Status* status) {
         unlink((std::string(path) + "/link/file").c_str());
         original.filesystem.delete_recursively(filesystem, path, files, directories, status);
       };
     }},
};
