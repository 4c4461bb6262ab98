// Defects of files that are opened for writing at their end.
#include "defects.h"
#include "misjudging.h"
#include "open_paths.h"

DEFECTS(appending) = {
    {"FS-192", [](Tables& tables) {  // a missing file is not made
       misjudge<&TF_FilesystemOps::new_appendable_file>(tables, "log", TF_NOT_FOUND);
     }},
    {"FS-193", [](Tables& tables) {  // what was there is lost
       tables.filesystem.new_appendable_file = [](const TF_Filesystem* filesystem,
                                                  const char* path, TF_WritableFile* file,
                                                  TF_Status* status) {
         const bool anew = ends_in(path, "continued");
         const auto open = anew ? original.filesystem.new_writable_file
                                : original.filesystem.new_appendable_file;
         open(filesystem, path, file, status);
       };
     }},
    {"FS-194", [](Tables& tables) {  // it counts from where it was opened
       follow_writers(tables);
       tables.writing.tell = [](const TF_WritableFile* file, TF_Status* status) -> int64_t {
         const int64_t position = original.writing.tell(file, status);
         return is_of(file, "end-told") ? 0 : position;
       };
     }},
    {"FS-195", [](Tables& tables) {  // a missing parent is a failed precondition
       misjudge<&TF_FilesystemOps::new_appendable_file>(tables, "X/y", TF_FAILED_PRECONDITION);
     }},
    {"FS-196", [](Tables& tables) {  // a directory is not found
       misjudge<&TF_FilesystemOps::new_appendable_file>(tables, "D", TF_NOT_FOUND);
     }},
    {"FS-197", [](Tables& tables) {  // a name below a file is a missing one
       misjudge<&TF_FilesystemOps::new_appendable_file>(tables, "F/x", TF_NOT_FOUND);
     }},
    {"FS-198", [](Tables& tables) {  // opening empties
       tables.filesystem.new_appendable_file = [](const TF_Filesystem* filesystem,
                                                  const char* path, TF_WritableFile* file,
                                                  TF_Status* status) {
         const bool anew = ends_in(path, "untouched");
         const auto open = anew ? original.filesystem.new_writable_file
                                : original.filesystem.new_appendable_file;
         open(filesystem, path, file, status);
       };
     }},
};
