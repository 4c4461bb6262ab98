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

SharedInit& of_plugin(const TF_FilesystemOps& table) {
  for (SharedInit* shared = first; shared != nullptr; shared = shared->next) {
    if (shared->init == table.init) return *shared;
  }
  first = new SharedInit{table.init, first};
  return *first;
}

Error call_init(SharedInit& shared, const mtf_plugin* plugin) {
  shared.handle = {};
  Error error = guarded({plugin, "init"}, [&](TF_Status* status) {
    shared.init(&shared.handle, status);
  });
  if (!error) shared.process = getpid();
  return error;
}

}  // namespace

Error join_shared_init(const TF_FilesystemOps& table, const mtf_plugin* plugin,
                       TF_Filesystem* handle) {
  const LockGuard lock(all);
  SharedInit& shared = of_plugin(table);
  if (shared.users == 0) {
    if (Error error = call_init(shared, plugin)) return error;
  }
  ++shared.users;
  *handle = shared.handle;
  return nullptr;
}

Error leave_shared_init(const TF_FilesystemOps& table, const mtf_plugin* plugin) {
  // Held meanwhile, so that what cleanup ends is not begun anew before it has ended.
  const LockGuard lock(all);
  SharedInit& shared = of_plugin(table);
  if (--shared.users != 0) return nullptr;
  return guarded({plugin, "cleanup"}, [&](TF_Status*) { table.cleanup(&shared.handle); });
}

Error repeat_shared_init(const TF_FilesystemOps& table, const mtf_plugin* plugin,
                         TF_Filesystem* handle) {
  const LockGuard lock(all);
  SharedInit& shared = of_plugin(table);
  Error error = shared.process == getpid() ? nullptr : call_init(shared, plugin);
  *handle = shared.handle;
  return error;
}

}  // namespace mtf
