// A core whose table of filesystems has a slot more (test_filesystem_slots.py): calls it in the process, in a
// worker, and as TensorFlow would.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "bridge.h"
#include "filesystem_slots.h"
#include "filesystem_state.h"
#include "worker.h"
#include "worker_upcalls.h"

namespace {

constexpr char kPath[] = "added://host/abc";
mtf_filesystem* served;

void init(TF_Filesystem*, TF_Status*) {}
void cleanup(TF_Filesystem*) {}
int64_t count_links(const TF_Filesystem*, const char* path, TF_Status*) {
  return static_cast<int64_t>(std::strlen(path));
}

int64_t links(mtf_filesystem* filesystem) {
  mtf::SlotValues values(kPath);
  const mtf::Error error = mtf::call_slot(mtf::Slot::count_links, filesystem, values);
  return error ? -error.code() : values.numbers[0];
}

mtf_filesystem* filesystem_of(const mtf::Tables& tables) {
  mtf_filesystem* made = nullptr;
  mtf_error* error = mtf_filesystem_new(&tables, nullptr, &made);
  if (error != nullptr) std::abort();
  return made;
}

mtf_filesystem* in_worker(const mtf::Tables& slots, mtf_worker* worker) {
  static mtf::Tables tables;
  mtf_filesystem* made = nullptr;
  mtf_worker_tables(&slots, &tables);
  if (mtf_filesystem_new_in_worker(&tables, nullptr, worker, 0, 0, &made) != nullptr) std::abort();
  return made;
}

int64_t links_in_tensorflow() {
  TF_FilesystemPluginInfo info = {};
  if (mtf_bridge_connect(nullptr) != nullptr || mtf_bridge_offer("added") != nullptr) std::abort();
  TF_InitPlugin(&info);
  TF_Status status = {};
  return info.ops->filesystem_ops->count_links(nullptr, kPath, &status);
}

}  // namespace

extern "C" {

int mtf_upcall_worker_start(int64_t, int64_t, char*, size_t) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return -1;
  std::thread([control = ends[1]] {
    mtf_worker_serve(control, &served, 1);
    close(control);
  }).detach();
  return ends[0];
}
void mtf_upcall_worker_ended(int64_t, int64_t, int, char*, size_t) {}
int mtf_upcall_worker_signals(void) { return 0; }

void mtf_upcall_path(const char* operation, const char* path, const char*, mtf_bridge_answer* answer) {
  answer->code = std::strcmp(operation, "count_links") == 0 && std::strcmp(path, kPath) == 0 ? TF_OK : TF_INTERNAL;
  answer->numbers[0] = 42;
}
void mtf_upcall_read(int64_t, uint64_t, char*, size_t, mtf_bridge_answer*) {}
void mtf_upcall_file(const char*, int64_t, const char*, size_t, mtf_bridge_answer*) {}

}  // extern "C"

int main() {
  static mtf::Tables tables = {};
  tables.filesystem.init = init;
  tables.filesystem.cleanup = cleanup;
  tables.plugin_allocate = std::malloc;
  tables.plugin_free = std::free;
  const auto without = static_cast<long long>(links(filesystem_of(tables)));
  tables.filesystem.count_links = count_links;
  served = filesystem_of(tables);
  mtf_worker* worker = mtf_worker_new(1, nullptr, 0);
  const auto here = static_cast<long long>(links(served));
  const auto there = static_cast<long long>(links(in_worker(tables, worker)));
  mtf_worker_close(worker);
  std::printf("%lld %lld %lld %lld\n", without, here, there, static_cast<long long>(links_in_tensorflow()));
  std::fflush(stdout);
  _exit(0);
}
