// What the functions that call a worker have in common.
#pragma once

#include "filesystem_state.h"
#include "worker_call.h"

namespace mtf {

// What is behind TF_Filesystem.plugin_filesystem.
struct RemoteFilesystem {
  mtf_worker* worker;
  uint32_t index;
  bool looks;  // at files that are opened for reading, which costs little: they are of this machine
};

inline const RemoteFilesystem& remote(const TF_Filesystem* filesystem) {
  return *static_cast<const RemoteFilesystem*>(filesystem->plugin_filesystem);
}

inline wire::Request request_of(wire::Operation operation, uint32_t filesystem) {
  wire::Request request = {};
  request.operation = operation;
  request.filesystem = filesystem;
  return request;
}

// A call with one or two texts; `take` gets the reply of one that succeeded.
template <class Take>
void call_on(const TF_Filesystem* filesystem, wire::Operation operation, const char* first,
             const char* second, TF_Status* status, Take&& take) {
  const RemoteFilesystem& there = remote(filesystem);
  WorkerCall call(there.worker, status);
  if (!call || !call.texts(first, second)) return;
  if (call.perform(request_of(operation, there.index))) take(call);
}

// A slot of ours where the plugin has one.
template <class Slot>
void put(Slot& slot, const Slot& theirs, Slot ours) {
  slot = theirs != nullptr ? ours : nullptr;
}

// Puts the functions of open files and memory regions into `ours`, for the slots that `theirs` has.
void put_file_functions(const Tables& theirs, Tables& ours);
// The same for transactions and options.
void put_setting_functions(const Tables& theirs, Tables& ours);

// The cleanup of open files.
void release_in_worker(TF_RandomAccessFile* file, TF_Status* status);
void release_in_worker(TF_WritableFile* file, TF_Status* status);

// The text of a transaction, of malloc's; NULL where the status is not OK.
char* decode_in_worker(const TF_Filesystem* filesystem, const TF_TransactionToken* token,
                       TF_Status* status);

}  // namespace mtf
