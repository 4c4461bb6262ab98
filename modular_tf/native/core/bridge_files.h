// What all files have in common that TensorFlow has open.
#pragma once

#include <exception>

#include "bridge_calls.h"
#include "fork_lock.h"

namespace mtf::bridge {

// Lets Python forget an open file; 0 is none.
void release(int64_t file);

// Takes the lock of a file. Its holder may wait for the GIL, which this thread may hold, since
// TensorFlow keeps it in some calls: so the wait is Python's, which gives it away. To a signal
// handler that has interrupted the holder it returns no lock, and a status that says so.
UniqueCallLock lock_of(CallLock& lock, int64_t file, TF_Status* status);

// Says in a status that the process ends.
void refuse(TF_Status* status);

// Runs a slot; what the C++ library throws becomes a status.
template <class Slot>
void guarded(TF_Status* status, Slot&& slot) {
  try {
    slot();
  } catch (const std::exception& error) {
    set_status(status, TF_RESOURCE_EXHAUSTED, error.what());
  }
}

}  // namespace mtf::bridge
