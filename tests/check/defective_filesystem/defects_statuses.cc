// Defects of the statuses that operations leave.
#include <cstring>
#include <string>

#include "defects.h"
#include "paths.h"

DEFECTS(statuses) = {
    {"FS-136",  // says nothing of success
     [](Tables& tables) {
       tables.filesystem.get_file_size = [](const TF_Filesystem* filesystem, const char* path,
                                            TF_Status* status) -> int64_t {
         TF_Status* own = TF_NewStatus();
         const int64_t size = original.filesystem.get_file_size(filesystem, path, own);
         if (TF_GetCode(own) != TF_OK) TF_SetStatus(status, TF_GetCode(own), TF_Message(own));
         TF_DeleteStatus(own);
         return size;
       };
     }},
    {"FS-137",  // says nothing of failure
     [](Tables& tables) {
       tables.filesystem.delete_file = [](const TF_Filesystem* filesystem, const char* path,
                                          TF_Status* status) {
         original.filesystem.delete_file(filesystem, path, status);
         const TF_Code code = TF_GetCode(status);
         if (code != TF_OK) TF_SetStatus(status, code, "");
       };
     }},
    {"FS-138",
     [](Tables& tables) {
       tables.filesystem.get_matching_paths = [](const TF_Filesystem*, const char* pattern, char***,
                                                 TF_Status* status) {
         TF_SetStatus(status, TF_UNIMPLEMENTED, pattern);
         return -1;
       };
     }},
    {"FS-357",  // has no memory for long paths
     [](Tables& tables) {
       tables.filesystem.stat = [](const TF_Filesystem* filesystem, const char* path,
                                   TF_FileStatistics* statistics, TF_Status* status) {
         if (std::strlen(path) > 900) __builtin_trap();
         original.filesystem.stat(filesystem, path, statistics, status);
       };
     }},
    {"long-paths-are-cut",  // so two files are one
     [](Tables& tables) {
       tables.filesystem.new_writable_file = [](const TF_Filesystem* filesystem, const char* path,
                                                TF_WritableFile* file, TF_Status* status) {
         const std::string cut = std::string(path).substr(0, 900);
         original.filesystem.new_writable_file(filesystem, cut.c_str(), file, status);
       };
       tables.filesystem.new_random_access_file = [](const TF_Filesystem* filesystem,
                                                     const char* path, TF_RandomAccessFile* file,
                                                     TF_Status* status) {
         const std::string cut = std::string(path).substr(0, 900);
         original.filesystem.new_random_access_file(filesystem, cut.c_str(), file, status);
       };
     }},
    {"FS-334",  // takes what was in the status for its own failure
     [](Tables& tables) {
       tables.filesystem.path_exists = [](const TF_Filesystem* filesystem, const char* path,
                                          TF_Status* status) {
         if (TF_GetCode(status) == TF_OK) original.filesystem.path_exists(filesystem, path, status);
       };
     }},
};
