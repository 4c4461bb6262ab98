// Defects of init and cleanup, and of what is done with what was handed over.
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "defects.h"
#include "handed_over.h"

namespace {

using defective::handed_over;
using defective::original;

std::vector<TF_Filesystem*>& alive() {
  static std::vector<TF_Filesystem*> filesystems;
  return filesystems;
}

void init_and_remember(TF_Filesystem* filesystem, TF_Status* status) {
  original.filesystem.init(filesystem, status);
  alive().push_back(filesystem);
}

// Takes the content of the others along, where there are two of them.
void clean_up_all(TF_Filesystem* filesystem) {
  alive().erase(std::remove(alive().begin(), alive().end(), filesystem), alive().end());
  original.filesystem.cleanup(filesystem);
  if (alive().size() < 2) return;
  TF_Status* status = TF_NewStatus();
  for (TF_Filesystem* other : alive()) {
    original.filesystem.cleanup(other);
    original.filesystem.init(other, status);
  }
  TF_DeleteStatus(status);
}

}  // namespace

DEFECTS(lifetime) = {
    {"FS-132",  // writes behind the handle of every further filesystem
     [](Tables& tables) {
       tables.filesystem.init = [](TF_Filesystem* filesystem, TF_Status* status) {
         original.filesystem.init(filesystem, status);
         static int calls = 0;
         if (calls++ > 0) filesystem[1].plugin_filesystem = filesystem;
       };
     }},
    {"FS-134",
     [](Tables& tables) {
       tables.filesystem.init = init_and_remember;
       tables.filesystem.cleanup = clean_up_all;
     }},
    {"FS-135",  // a descriptor for every second one, for ever
     [](Tables& tables) {
       tables.filesystem.init = [](TF_Filesystem* filesystem, TF_Status* status) {
         original.filesystem.init(filesystem, status);
         static int calls = 0;
         if (++calls % 2 == 0 && dup(STDIN_FILENO) < 0)
           TF_SetStatus(status, TF_INTERNAL, "no descriptor left");
       };
     }},
    {"FS-126",
     [](Tables& tables) {
       keep_hold_of_table(tables);
       tables.filesystem.cleanup = [](TF_Filesystem* filesystem) {
         original.filesystem.cleanup(filesystem);
         handed_over->flush_caches = nullptr;  // as an allocator writes to what is freed
         handed_over->cleanup = nullptr;
       };
     }},
    {"FS-127",
     [](Tables& tables) {
       keep_hold_of_table(tables);
       tables.filesystem.path_exists = [](const TF_Filesystem* filesystem, const char* path,
                                          TF_Status* status) {
         TF_FileStatistics unused;
         handed_over->stat(filesystem, path, &unused, status);
       };
     }},
    {"FS-128",
     [](Tables& tables) {
       keep_hold_of_table(tables);
       tables.filesystem.path_exists = [](const TF_Filesystem* filesystem, const char* path,
                                          TF_Status* status) {
         handed_over->flush_caches = [](const TF_Filesystem*) {};
         original.filesystem.path_exists(filesystem, path, status);
       };
     }},
};
