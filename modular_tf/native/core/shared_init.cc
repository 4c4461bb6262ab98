#include "shared_init.h"

#include <unistd.h>

#include "fork_lock.h"


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

Lock all;
SharedInit* first = nullptr;

SharedInit& of_plugin(const TF_FilesystemOps& plugin) {
  for (SharedInit* shared = first; shared != nullptr; shared = shared->next) {
    if (shared->init == plugin.init) return *shared;
  }
  first = new SharedInit{plugin.init, first};
  return *first;
}

Error call_init(SharedInit& shared) {
  shared.handle = {};
  Error error = guarded([&](TF_Status* status) { shared.init(&shared.handle, status); });
  if (!error) shared.process = getpid();
  return error;
}

}  // namespace

Error join_shared_init(const TF_FilesystemOps& plugin, TF_Filesystem* handle) {
  const LockGuard lock(all);
  SharedInit& shared = of_plugin(plugin);
  if (shared.users == 0) {
    if (Error error = call_init(shared)) return error;
  }
  ++shared.users;
  *handle = shared.handle;
  return nullptr;
}

Error leave_shared_init(const TF_FilesystemOps& plugin) {
  // Held meanwhile, so that what cleanup ends is not begun anew before it has ended.
  const LockGuard lock(all);
  SharedInit& shared = of_plugin(plugin);
  if (--shared.users != 0) return nullptr;
  return guarded([&](TF_Status*) { plugin.cleanup(&shared.handle); });
}

Error repeat_shared_init(const TF_FilesystemOps& plugin, TF_Filesystem* handle) {
  const LockGuard lock(all);
  SharedInit& shared = of_plugin(plugin);
  Error error = shared.process == getpid() ? nullptr : call_init(shared);
  *handle = shared.handle;
  return error;
}

}  // namespace mtf
