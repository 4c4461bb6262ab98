// Defects of deleting.
#include <string>

#include "defects.h"
#include "misjudging.h"

namespace {

using defective::original;

void answer(uint64_t files, uint64_t directories, TF_Code code, const char* path,
            uint64_t* undeleted_files, uint64_t* undeleted_dirs, TF_Status* status) {
  *undeleted_files = files;
  *undeleted_dirs = directories;
  TF_SetStatus(status, code, path);
}

std::string parent_of(const char* path) {
  const std::string whole = path;
  return whole.substr(0, whole.rfind('/'));
}

}  // namespace

DEFECTS(deletion) = {
    {"FS-220", [](Tables& tables) {  // files are never deleted
       misjudge<&TF_FilesystemOps::delete_file>(tables, "deleted", TF_OK);
     }},
    {"FS-221", [](Tables& tables) {  // what is missing is deleted
       misjudge<&TF_FilesystemOps::delete_file>(tables, "X", TF_OK);
     }},
    {"FS-222", [](Tables& tables) {  // a directory is deleted too
       tables.filesystem.delete_file = [](const TF_Filesystem* filesystem, const char* path,
                                          TF_Status* status) {
         if (ends_in(path, "D")) return original.filesystem.delete_dir(filesystem, path, status);
         original.filesystem.delete_file(filesystem, path, status);
       };
     }},
    {"FS-223", [](Tables& tables) {  // a name below a file is a missing one
       misjudge<&TF_FilesystemOps::delete_file>(tables, "F/x", TF_NOT_FOUND);
     }},
    {"FS-224", [](Tables& tables) {  // directories are never deleted
       misjudge<&TF_FilesystemOps::delete_dir>(tables, "deleted-dir", TF_OK);
     }},
    {"FS-225", [](Tables& tables) {  // what is missing is deleted
       misjudge<&TF_FilesystemOps::delete_dir>(tables, "X", TF_OK);
     }},
    {"FS-226", [](Tables& tables) {  // what is in it goes too
       tables.filesystem.delete_dir = [](const TF_Filesystem* filesystem, const char* path,
                                         TF_Status* status) {
         if (!ends_in(path, "N")) return original.filesystem.delete_dir(filesystem, path, status);
         uint64_t files = 0;
         uint64_t directories = 0;
         original.filesystem.delete_recursively(filesystem, path, &files, &directories, status);
       };
     }},
    {"FS-227", [](Tables& tables) {  // a file is deleted too
       tables.filesystem.delete_dir = [](const TF_Filesystem* filesystem, const char* path,
                                         TF_Status* status) {
         if (ends_in(path, "F")) return original.filesystem.delete_file(filesystem, path, status);
         original.filesystem.delete_dir(filesystem, path, status);
       };
     }},
    {"FS-228", [](Tables& tables) {  // its neighbours go too
       tables.filesystem.delete_recursively =
           [](const TF_Filesystem* filesystem, const char* path, uint64_t* undeleted_files,
              uint64_t* undeleted_dirs, TF_Status* status) {
             const std::string top = ends_in(path, "home/tree") ? parent_of(path) : path;
             original.filesystem.delete_recursively(filesystem, top.c_str(), undeleted_files,
                                                    undeleted_dirs, status);
           };
     }},
    {"FS-229", [](Tables& tables) {  // that the walk did not start is not told
       tables.filesystem.delete_recursively =
           [](const TF_Filesystem* filesystem, const char* path, uint64_t* undeleted_files,
              uint64_t* undeleted_dirs, TF_Status* status) {
             original.filesystem.delete_recursively(filesystem, path, undeleted_files,
                                                    undeleted_dirs, status);
             if (ends_in(path, "X")) *undeleted_dirs = 0;
           };
     }},
    {"FS-230", [](Tables& tables) {  // a file is no tree
       tables.filesystem.delete_recursively =
           [](const TF_Filesystem* filesystem, const char* path, uint64_t* undeleted_files,
              uint64_t* undeleted_dirs, TF_Status* status) {
             if (ends_in(path, "alone")) {
               return answer(1, 0, TF_FAILED_PRECONDITION, path, undeleted_files, undeleted_dirs,
                             status);
             }
             original.filesystem.delete_recursively(filesystem, path, undeleted_files,
                                                    undeleted_dirs, status);
           };
     }},
    {"FS-231", [](Tables& tables) {  // a name below a file is a missing one
       tables.filesystem.delete_recursively =
           [](const TF_Filesystem* filesystem, const char* path, uint64_t* undeleted_files,
              uint64_t* undeleted_dirs, TF_Status* status) {
             if (ends_in(path, "F/x")) {
               return answer(0, 1, TF_NOT_FOUND, path, undeleted_files, undeleted_dirs, status);
             }
             original.filesystem.delete_recursively(filesystem, path, undeleted_files,
                                                    undeleted_dirs, status);
           };
     }},
    {"FS-233", [](Tables& tables) {  // without anything to delete the counters stay as they are
       tables.filesystem.delete_recursively =
           [](const TF_Filesystem* filesystem, const char* path, uint64_t* undeleted_files,
              uint64_t* undeleted_dirs, TF_Status* status) {
             if (ends_in(path, "uncounted")) return TF_SetStatus(status, TF_NOT_FOUND, path);
             original.filesystem.delete_recursively(filesystem, path, undeleted_files,
                                                    undeleted_dirs, status);
           };
     }},
};
