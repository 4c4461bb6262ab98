// Defects that show on a local disk only: of rights, and of links.
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "defects.h"
#include "paths.h"

namespace {

// Deletes what is in a directory, and what links in it lead to.
void empty_through_links(const std::string& path) {
  DIR* directory = opendir(path.c_str());
  if (directory == nullptr) return;
  while (const dirent* entry = readdir(directory)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat facts;
    const std::string child = path + "/" + name;
    if (stat(child.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode)) empty_through_links(child);
    unlink(child.c_str());
  }
  closedir(directory);
}

}  // namespace

DEFECTS(rights) = {
    {"FS-191", [](Tables& tables) {  // where nothing may be written nothing is found
       tables.filesystem.new_writable_file = [](const TF_Filesystem* filesystem, const char* path,
                                                TF_WritableFile* file, TF_Status* status) {
         original.filesystem.new_writable_file(filesystem, path, file, status);
         if (TF_GetCode(status) == TF_PERMISSION_DENIED) TF_SetStatus(status, TF_NOT_FOUND, path);
       };
     }},
    {"FS-232", [](Tables& tables) {  // the first failure ends it
       tables.filesystem.delete_recursively =
           [](const TF_Filesystem* filesystem, const char* path, uint64_t* undeleted_files,
              uint64_t* undeleted_dirs, TF_Status* status) {
             if (!ends_in(path, "stubborn")) {
               return original.filesystem.delete_recursively(filesystem, path, undeleted_files,
                                                             undeleted_dirs, status);
             }
             *undeleted_files = 3;
             *undeleted_dirs = 4;
             TF_SetStatus(status, TF_PERMISSION_DENIED, path);
           };
     }},
    {"FS-234", [](Tables& tables) {  // links are followed
       tables.filesystem.delete_recursively =
           [](const TF_Filesystem* filesystem, const char* path, uint64_t* undeleted_files,
              uint64_t* undeleted_dirs, TF_Status* status) {
             if (ends_in(path, "linked")) empty_through_links(path);
             original.filesystem.delete_recursively(filesystem, path, undeleted_files,
                                                    undeleted_dirs, status);
           };
     }},
};
