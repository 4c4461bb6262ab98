#include "filesystem_state.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>

#include "shared_init.h"
#include "uri.h"

namespace mtf {

mtf_error* closed_error(const char* what) {
  mtf_error* error = make_error(9, (std::string(what) + " is closed").c_str());
  if (error->code == 9) error->closed = 1;  // not so where memory ran out
  return error;
}

mtf_error* missing_operation(const char* name) {
  return make_error(12, (std::string("the plugin has no ") + name).c_str());
}

void set_status(TF_Status* status, int code, const char* message) {
  char* copy = strdup(message);
  mtf_status_clear(status);
  status->code = code;
  status->message = copy;
}

namespace {

// The rule for a plugin without translate_name: the path part, in normal form. `out` has room for
// strlen(uri) + 2 bytes.
void translate_by_default(const char* uri, char* out) {
  size_t scheme = 0;
  const char* path = uri + mtf_uri_path_offset(uri, &scheme);
  if (*path == '\0') {
    std::strcpy(out, scheme > 0 ? "/" : "");
  } else {
    mtf_clean_path(path, out);
  }
}

}  // namespace

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

TranslatedPath::TranslatedPath(const mtf_filesystem& filesystem, const char* path) {
  const auto translate = filesystem.tables->filesystem.translate_name;
  if (translate != nullptr) {
    path_ = translate(&filesystem.handle, path);
    plugin_free_ = filesystem.tables->plugin_free;
    return;
  }
  const size_t room = std::strlen(path) + 2;
  on_heap_ = room > kInline;
  path_ = on_heap_ ? static_cast<char*>(std::malloc(room)) : inline_;
  if (path_ == nullptr) throw std::bad_alloc();
  translate_by_default(path, path_);
}

TranslatedPath::~TranslatedPath() {
  if (plugin_free_ != nullptr) {
    plugin_free_(path_);
  } else if (on_heap_) {
    std::free(path_);
  }
}

}  // namespace mtf

void mtf_filesystem::leave() {
  if (gate.leave()) run_cleanup();
}

void mtf_filesystem::run_cleanup() {
  mtf_error_free(mtf::guarded([&](TF_Status*) {
    if (is_shared) return mtf::leave_shared_init(tables->filesystem);
    tables->filesystem.cleanup(&handle);
  }));
  cleanup_done = true;
}

void mtf_filesystem::clean_up_in_time() {
  // The process ends. A plugin whose cleanup did not run may abort it, so a thread that is still in
  // a call is worth waiting for; one that never returns is not.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!cleanup_done && std::chrono::steady_clock::now() < deadline) {
    if (gate.end_in_spite_of_resting()) return run_cleanup();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void mtf_filesystem::add_open(mtf::OpenFile* file) {
  std::lock_guard<std::mutex> lock(open_mutex);
  file->put_on(open_files);
}

void mtf_filesystem::remove_open(mtf::OpenFile* file) {
  std::lock_guard<std::mutex> lock(open_mutex);
  file->take_off();
}

mtf::OpenFile* mtf_filesystem::take_open() {
  std::lock_guard<std::mutex> lock(open_mutex);
  mtf::OpenFile* file = open_files;
  if (file == nullptr) return nullptr;
  file->references.fetch_add(1);
  file->take_off();
  file->put_on(closing_files);
  return file;
}

void mtf_filesystem::abandon_all() {
  new (&open_mutex) std::mutex;
  for (mtf::OpenFile** list : {&open_files, &closing_files}) {
    // By `next` alone: the fork may have come in the middle of a change to the other links.
    while (mtf::OpenFile* file = *list) {
      *list = file->next;
      file->link = nullptr;
      file->abandon();
    }
  }
}
