// Defects that load, want of descriptors and the end of the process bring out.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "defects.h"

namespace {

using defective::original;

std::atomic<int> inside{0};

// Every fourth call that finds another under way fails.
void refuse_a_crowd(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file,
                    TF_Status* status) {
  static std::atomic<int> crowded{0};
  const bool in_thread_directory = std::strstr(path, "/thread") != nullptr;
  const bool refuses = in_thread_directory && inside++ > 0 && ++crowded % 4 == 0;
  if (in_thread_directory) usleep(100);
  if (refuses) {
    TF_SetStatus(status, TF_UNAVAILABLE, "another thread is at work");
  } else {
    original.filesystem.new_writable_file(filesystem, path, file, status);
  }
  if (in_thread_directory) --inside;
}

void find_nothing_without_descriptors(const TF_Filesystem* filesystem, const char* path,
                                      TF_RandomAccessFile* file, TF_Status* status) {
  const int probe = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (probe < 0 && errno == EMFILE) return TF_SetStatus(status, TF_NOT_FOUND, path);
  if (probe >= 0) close(probe);
  original.filesystem.new_random_access_file(filesystem, path, file, status);
}

void init_and_abort_at_exit(TF_Filesystem* filesystem, TF_Status* status) {
  original.filesystem.init(filesystem, status);
  std::atexit(abort);
}

pid_t initialised_in = 0;

void init_and_remember(TF_Filesystem* filesystem, TF_Status* status) {
  initialised_in = getpid();
  original.filesystem.init(filesystem, status);
}

void open_in_one_process(const TF_Filesystem* filesystem, const char* path,
                         TF_RandomAccessFile* file, TF_Status* status) {
  if (getpid() != initialised_in) return TF_SetStatus(status, TF_INTERNAL, "no thread to ask");
  original.filesystem.new_random_access_file(filesystem, path, file, status);
}

}  // namespace

DEFECTS(load) = {
    {"FS-321", [](Tables& tables) { tables.filesystem.new_writable_file = refuse_a_crowd; }},
    {"FS-322", [](Tables& tables) {
       tables.filesystem.new_random_access_file = find_nothing_without_descriptors;
     }},
    {"FS-323", [](Tables& tables) { tables.filesystem.init = init_and_abort_at_exit; }},
    {"FS-330", [](Tables& tables) {
       tables.filesystem.init = init_and_remember;
       tables.filesystem.new_random_access_file = open_in_one_process;
     }},
};
