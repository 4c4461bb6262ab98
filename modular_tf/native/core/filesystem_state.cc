#include "filesystem_state.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "shared_init.h"
#include "uri.h"

namespace mtf {

Error closed_filesystem_error() { return make_closed_error("the filesystem is closed"); }

Error missing_operation(const char* name) {
  char message[128];
  std::snprintf(message, sizeof message, "the plugin has no %s", name);
  return make_error(TF_UNIMPLEMENTED, message);
}

void OpenFile::put_on(OpenFile*& list) {
  next = list;
  link = &list;
  if (next != nullptr) next->link = &next;
  list = this;
}

void OpenFile::take_off() {
  if (link == nullptr) return;
  *link = next;
  if (next != nullptr) next->link = link;
  link = nullptr;
}

Error TranslatedPath::translate(const mtf_filesystem& filesystem, const char* path) {
  if (!filesystem.in_worker) return translate_here(filesystem, path);
  path_ = const_cast<char*>(path);
  return nullptr;
}

Error TranslatedPath::translate_here(const mtf_filesystem& filesystem, const char* path) {
  const auto translate = filesystem.tables->filesystem.translate_name;
  if (translate == nullptr) return translate_by_default(path);
  Error error = guarded({filesystem.plugin, "translate_name", path},
                        [&](TF_Status* status) {
    path_ = call_without_status(filesystem, translate, status, &filesystem.handle, path);
  });
  plugin_ = filesystem.plugin;
  plugin_free_ = filesystem.tables->plugin_free;
  if (!error && path_ == nullptr) return make_error(TF_INTERNAL, "translate_name returned NULL");
  return error;
}

// The rule for a plugin without translate_name: the path part, in normal form.
Error TranslatedPath::translate_by_default(const char* uri) {
  const size_t room = std::strlen(uri) + 2;
  on_heap_ = room > kInline;
  path_ = on_heap_ ? static_cast<char*>(std::malloc(room)) : inline_;
  if (path_ == nullptr) return make_error(TF_RESOURCE_EXHAUSTED, "no memory for a path");
  size_t scheme = 0;
  const char* path = uri + mtf_uri_path_offset(uri, &scheme);
  if (*path == '\0') {
    std::strcpy(path_, scheme > 0 ? "/" : "");
  } else {
    mtf_clean_path(path, path_);
  }
  return nullptr;
}

TranslatedPath::~TranslatedPath() {
  if (plugin_free_ != nullptr) {
    free_by_plugin(plugin_, plugin_free_, path_);
  } else if (on_heap_) {
    std::free(path_);
  }
}

}  // namespace mtf

void mtf_filesystem::leave() {
  if (gate.leave()) run_cleanup();
}

void mtf_filesystem::run_cleanup() {
  mtf::drop(is_shared ? mtf::leave_shared_init(tables->filesystem, plugin)
                      : mtf::guarded({plugin, "cleanup"}, [&](TF_Status*) {
                          tables->filesystem.cleanup(&handle);
                        }));
  cleanup_done = true;
}

void mtf_filesystem::clean_up_in_time() {
  // The process ends. A plugin whose cleanup did not run may abort it, so a thread that is still in
  // a call is worth waiting for; one that never returns is not.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!cleanup_done && std::chrono::steady_clock::now() < deadline) {
    if (gate.end_ignoring_pins()) return run_cleanup();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void mtf_filesystem::add_open(mtf::OpenFile* file) {
  const mtf::LockGuard lock(open_lock);
  file->put_on(open_files);
}

void mtf_filesystem::remove_open(mtf::OpenFile* file) {
  const mtf::LockGuard lock(open_lock);
  file->take_off();
}

mtf::OpenFile* mtf_filesystem::take_open() {
  const mtf::LockGuard lock(open_lock);
  mtf::OpenFile* file = open_files;
  if (file == nullptr) return nullptr;
  file->references.fetch_add(1);
  file->take_off();
  file->put_on(closing_files);
  return file;
}

void mtf_filesystem::abandon_all() {
  for (mtf::OpenFile** list : {&open_files, &closing_files}) {
    // By `next` alone: the fork may have come in the middle of a change to the other links.
    while (mtf::OpenFile* file = *list) {
      *list = file->next;
      file->link = nullptr;
      file->abandon();
    }
  }
}
