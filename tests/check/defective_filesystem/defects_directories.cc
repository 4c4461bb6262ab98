// Defects of making directories.
#include <atomic>
#include <cstring>
#include <string>

#include "defects.h"
#include "misjudging.h"

namespace {

using defective::original;
using Make = decltype(TF_FilesystemOps::create_dir);

std::string parent_of(const char* path) {
  const std::string whole = path;
  return whole.substr(0, whole.rfind('/'));
}

std::atomic<int> made_twice{0};
std::atomic<int> made_by_crowd{0};

}  // namespace

DEFECTS(directories) = {
    {"FS-206", [](Tables& tables) {  // directories are never made
       misjudge<&TF_FilesystemOps::create_dir>(tables, "made", TF_OK);
     }},
    {"FS-207", [](Tables& tables) {  // parents are made
       tables.filesystem.create_dir = [](const TF_Filesystem* filesystem, const char* path,
                                         TF_Status* status) {
         const bool deep = ends_in(path, "X/y");
         const Make make =
             deep ? original.filesystem.recursively_create_dir : original.filesystem.create_dir;
         make(filesystem, path, status);
       };
     }},
    {"FS-208", [](Tables& tables) {  // what is there is made again
       tables.filesystem.create_dir = [](const TF_Filesystem* filesystem, const char* path,
                                         TF_Status* status) {
         original.filesystem.create_dir(filesystem, path, status);
         if (ends_in(path, "D")) TF_SetStatus(status, TF_OK, "");
       };
     }},
    {"FS-209", [](Tables& tables) {  // a file gives way
       tables.filesystem.create_dir = [](const TF_Filesystem* filesystem, const char* path,
                                         TF_Status* status) {
         original.filesystem.create_dir(filesystem, path, status);
         if (!ends_in(path, "F")) return;
         original.filesystem.delete_file(filesystem, path, status);
         TF_SetStatus(status, TF_ALREADY_EXISTS, path);
       };
     }},
    {"FS-210", [](Tables& tables) {  // a name below a file is a missing one
       misjudge<&TF_FilesystemOps::create_dir>(tables, "F/x", TF_NOT_FOUND);
     }},
    {"FS-211", [](Tables& tables) {  // the root is made
       tables.filesystem.create_dir = [](const TF_Filesystem* filesystem, const char* path,
                                         TF_Status* status) {
         if (std::strcmp(path, "/") == 0) return TF_SetStatus(status, TF_OK, "");
         original.filesystem.create_dir(filesystem, path, status);
       };
     }},
    {"FS-212", [](Tables& tables) {  // the last level is forgotten
       tables.filesystem.recursively_create_dir = [](const TF_Filesystem* filesystem,
                                                     const char* path, TF_Status* status) {
         const std::string made = ends_in(path, "a/b/c/d") ? parent_of(path) : path;
         original.filesystem.recursively_create_dir(filesystem, made.c_str(), status);
       };
     }},
    {"FS-213", [](Tables& tables) {  // what is there cannot be made
       tables.filesystem.recursively_create_dir = [](const TF_Filesystem* filesystem,
                                                     const char* path, TF_Status* status) {
         if (ends_in(path, "present/twice") && made_twice++ > 0) {
           return TF_SetStatus(status, TF_ALREADY_EXISTS, path);
         }
         original.filesystem.recursively_create_dir(filesystem, path, status);
       };
     }},
    {"FS-214", [](Tables& tables) {  // below a directory that is there only one level is made
       tables.filesystem.recursively_create_dir = [](const TF_Filesystem* filesystem,
                                                     const char* path, TF_Status* status) {
         const std::string made = ends_in(path, "base/e/f") ? parent_of(path) : path;
         original.filesystem.recursively_create_dir(filesystem, made.c_str(), status);
       };
     }},
    {"FS-215", [](Tables& tables) {  // a file is taken for a directory
       misjudge<&TF_FilesystemOps::recursively_create_dir>(tables, "F", TF_OK);
     }},
    {"FS-216", [](Tables& tables) {  // a name below a file is a missing one
       misjudge<&TF_FilesystemOps::recursively_create_dir>(tables, "N/file/x/y", TF_NOT_FOUND);
     }},
    {"FS-217", [](Tables& tables) {  // it is create_dir
       misjudge<&TF_FilesystemOps::recursively_create_dir>(tables, "r/s/t/u/v/w/x/z",
                                                           TF_NOT_FOUND);
     }},
    {"FS-218", [](Tables& tables) {  // what is left by .. is made too
       tables.filesystem.recursively_create_dir = [](const TF_Filesystem* filesystem,
                                                     const char* path, TF_Status* status) {
         original.filesystem.recursively_create_dir(filesystem, path, status);
         if (!ends_in(path, "up/aside")) return;
         const std::string left = parent_of(path) + "/down";
         original.filesystem.create_dir(filesystem, left.c_str(), status);
       };
     }},
    {"FS-358", [](Tables& tables) {  // the root is there already
       tables.filesystem.recursively_create_dir = [](const TF_Filesystem* filesystem,
                                                     const char* path, TF_Status* status) {
         if (std::strcmp(path, "/") == 0) return TF_SetStatus(status, TF_ALREADY_EXISTS, path);
         original.filesystem.recursively_create_dir(filesystem, path, status);
       };
     }},
    {"FS-219", [](Tables& tables) {  // who comes second fails
       tables.filesystem.recursively_create_dir = [](const TF_Filesystem* filesystem,
                                                     const char* path, TF_Status* status) {
         if (ends_in(path, "crowd/of/threads/makes/this") && made_by_crowd++ > 0) {
           return TF_SetStatus(status, TF_ALREADY_EXISTS, path);
         }
         original.filesystem.recursively_create_dir(filesystem, path, status);
       };
     }},
};
