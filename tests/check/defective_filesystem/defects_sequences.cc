// A defect that only a sequence shows.
#include <csignal>
#include <mutex>
#include <set>
#include <string>

#include "defects.h"

using defective::original;

namespace {

std::mutex mutex;
std::set<std::string> copied;  // the targets of copies

void remember_copy(const TF_Filesystem* filesystem, const char* source, const char* target,
                   TF_Status* status) {
  original.filesystem.copy_file(filesystem, source, target, status);
  const std::lock_guard<std::mutex> held(mutex);
  copied.insert(target);
}

void rename_or_crash(const TF_Filesystem* filesystem, const char* source, const char* target,
                     TF_Status* status) {
  {
    const std::lock_guard<std::mutex> held(mutex);
    if (copied.count(source) != 0) raise(SIGSEGV);
  }
  original.filesystem.rename_file(filesystem, source, target, status);
}

}  // namespace

DEFECTS(sequences) = {
    {"FS-320", [](Tables& tables) {  // a copy cannot be renamed
       tables.filesystem.copy_file = remember_copy;
       tables.filesystem.rename_file = rename_or_crash;
     }},
};
