#include "filesystem.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "filesystem_state.h"
#include "shared_init.h"

using mtf::Error;
using mtf::guarded;

extern "C" mtf_error* mtf_init_filesystem_plugin(void* entry, const mtf_plugin* plugin,
                                                 mtf_plugin_info* info) {
  static_assert(sizeof(mtf_plugin_info) == sizeof(TF_FilesystemPluginInfo), "one layout, two names");
  *info = {};
  return guarded({plugin, "TF_InitPlugin"}, [&](TF_Status*) {
    reinterpret_cast<void (*)(mtf_plugin_info*)>(entry)(info);
  });
}

extern "C" mtf_error* mtf_plugin_free(void* plugin_free, void* memory) {
  return guarded({nullptr, "plugin_memory_free"},
                 [&](TF_Status*) { reinterpret_cast<void (*)(void*)>(plugin_free)(memory); });
}

extern "C" void mtf_strings_free(mtf_strings* strings) {
  std::free(strings->bytes);
  *strings = {};
}

extern "C" void mtf_string_free(char* string) { std::free(string); }

namespace {

using Init = Error (*)(const TF_FilesystemOps&, const mtf_plugin*, TF_Filesystem*);

Error init_own(const TF_FilesystemOps& table, const mtf_plugin* plugin, TF_Filesystem* handle) {
  return guarded({plugin, "init"}, [&](TF_Status* status) { table.init(handle, status); });
}

Error make_filesystem(const void* tables, const mtf_plugin* plugin, bool is_shared,
                      mtf_filesystem** filesystem) {
  auto made = std::make_unique<mtf_filesystem>(tables, plugin);
  made->is_shared = is_shared;
  const Init init = is_shared ? mtf::join_shared_init : init_own;
  Error error = init(made->tables->filesystem, plugin, &made->handle);
  if (!error) *filesystem = made.release();
  return error;
}

}  // namespace

extern "C" mtf_error* mtf_filesystem_new(const void* tables, const mtf_plugin* plugin,
                                         mtf_filesystem** filesystem) {
  return make_filesystem(tables, plugin, false, filesystem);
}

extern "C" mtf_error* mtf_filesystem_new_shared(const void* tables, const mtf_plugin* plugin,
                                                mtf_filesystem** filesystem) {
  return make_filesystem(tables, plugin, true, filesystem);
}

extern "C" mtf_error* mtf_filesystem_close(mtf_filesystem* filesystem, int now) {
  const bool ends_here = filesystem->gate.close();
  Error first;
  // Nothing can be opened any more: what is being opened right now closes itself.
  while (mtf::OpenFile* file = filesystem->take_open()) {
    Error error = file->close(now == 0);
    file->release();
    if (!first) first = std::move(error);
  }
  if (ends_here) filesystem->run_cleanup();
  if (now != 0) filesystem->clean_up_in_time();
  return first.release();
}

extern "C" void mtf_filesystem_release(mtf_filesystem* filesystem) {
  if (filesystem == nullptr) return;
  mtf::drop(Error(mtf_filesystem_close(filesystem, 0)));
  filesystem->release();
}

extern "C" mtf_error* mtf_filesystem_after_fork(mtf_filesystem* filesystem, int reinitialise) {
  filesystem->abandon_all();
  filesystem->gate.after_fork();
  filesystem->cleanup_done = filesystem->gate.has_ended();  // by the parent, soon if not yet
  // A child of a fork has a worker of its own, which calls init.
  if (filesystem->gate.is_closed() || reinitialise == 0 || filesystem->in_worker) return nullptr;
  filesystem->handle = {};
  const Init init = filesystem->is_shared ? mtf::repeat_shared_init : init_own;
  return init(filesystem->tables->filesystem, filesystem->plugin, &filesystem->handle);
}

extern "C" int mtf_filesystem_shares_store(const mtf_filesystem* filesystem,
                                           const mtf_filesystem* other) {
  const bool no_state = filesystem->handle.plugin_filesystem == nullptr &&
                        other->handle.plugin_filesystem == nullptr;
  return no_state && !other->gate.is_closed() &&
                 std::memcmp(filesystem->tables, other->tables, sizeof(mtf::Tables)) == 0
             ? 1
             : 0;
}

extern "C" int mtf_filesystem_is_in_use(const mtf_filesystem* filesystem) {
  return filesystem->gate.is_in_use() ? 1 : 0;
}

extern "C" int64_t mtf_filesystem_open_count(mtf_filesystem* filesystem) {
  const mtf::LockGuard lock(filesystem->open_lock);
  auto count = static_cast<int64_t>(filesystem->gate.pins());
  for (mtf::OpenFile* file = filesystem->open_files; file != nullptr; file = file->next) ++count;
  return count;
}
