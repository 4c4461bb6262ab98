#include "shared_init.h"

#include <unistd.h>

#include <mutex>
#include <new>

#include "status.h"

namespace mtf {
namespace {

// One for each plugin that ever had one: a fork in the middle of a change to the list finds it whole.
struct SharedInit {
  void (*init)(TF_Filesystem*, TF_Status*);  // tells plugins apart
  SharedInit* next;
  TF_Filesystem handle = {};
  int users = 0;
  pid_t process = 0;  // that called init
};

std::mutex mutex;
SharedInit* first = nullptr;

SharedInit& of_plugin(const TF_FilesystemOps& plugin) {
  for (SharedInit* shared = first; shared != nullptr; shared = shared->next) {
    if (shared->init == plugin.init) return *shared;
  }
  first = new SharedInit{plugin.init, first};
  return *first;
}

void call_init(SharedInit& shared, TF_Status* status) {
  shared.handle = {};
  shared.init(&shared.handle, status);
  if (status->code == 0) shared.process = getpid();
}

}  // namespace

void join_shared_init(const TF_FilesystemOps& plugin, TF_Filesystem* handle, TF_Status* status) {
  std::lock_guard<std::mutex> lock(mutex);
  SharedInit& shared = of_plugin(plugin);
  if (shared.users == 0) call_init(shared, status);
  if (status->code != 0) return;
  ++shared.users;
  *handle = shared.handle;
}

void leave_shared_init(const TF_FilesystemOps& plugin) {
  // Held meanwhile, so that what cleanup ends is not begun anew before it has ended.
  std::lock_guard<std::mutex> lock(mutex);
  SharedInit& shared = of_plugin(plugin);
  if (--shared.users == 0) plugin.cleanup(&shared.handle);
}

void repeat_shared_init(const TF_FilesystemOps& plugin, TF_Filesystem* handle, TF_Status* status) {
  std::lock_guard<std::mutex> lock(mutex);
  SharedInit& shared = of_plugin(plugin);
  if (shared.process != getpid()) call_init(shared, status);
  *handle = shared.handle;
}

void unlock_shared_inits() { new (&mutex) std::mutex; }

}  // namespace mtf
