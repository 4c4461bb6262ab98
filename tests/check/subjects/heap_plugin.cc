// The plugin in memory, whose path_exists misuses the heap as FIXTURE_MISUSE says, once a process;
// "at-loading" frees twice in TF_InitPlugin, "at-cleanup" in the cleanup of the filesystem, "nowhere"
// is none.
#include <cstdlib>
#include <cstring>

#include "modular_tf/filesystem.h"
#include "modular_tf/status.h"

extern "C" void reference_init_plugin(TF_FilesystemPluginInfo* info);

namespace {

decltype(TF_FilesystemOps::path_exists) original;
decltype(TF_FilesystemOps::cleanup) original_cleanup;

bool is_to(const char* misuse) {
  const char* chosen = std::getenv("FIXTURE_MISUSE");
  return chosen != nullptr && std::strcmp(chosen, misuse) == 0;
}

// The compiler must not see what is wrong.
char* unseen(char* pointer) {
  asm volatile("" : "+r"(pointer));
  return pointer;
}

void free_twice() {
  auto* block = unseen(static_cast<char*>(std::malloc(24)));
  char* again = unseen(block);
  std::free(block);
  std::free(again);
}

void misuse_heap() {
  static char* kept;
  if (kept != nullptr || is_to("at-loading") || is_to("at-cleanup") || is_to("nowhere")) return;
  kept = static_cast<char*>(std::malloc(24));
  if (is_to("free-twice")) return free_twice();
  *unseen(kept + 24) = 'x';
  if (!is_to("kept-overrun")) std::free(kept);
}

void exists(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  misuse_heap();
  original(filesystem, path, status);
}

void clean_up(TF_Filesystem* filesystem) {
  if (is_to("at-cleanup")) free_twice();
  original_cleanup(filesystem);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void TF_InitPlugin(
    TF_FilesystemPluginInfo* info) {
  if (is_to("at-loading")) free_twice();
  reference_init_plugin(info);
  auto* operations = static_cast<TF_FilesystemOps*>(info->ops[0].filesystem_ops);
  original = operations->path_exists;
  operations->path_exists = exists;
  original_cleanup = operations->cleanup;
  operations->cleanup = clean_up;
}
