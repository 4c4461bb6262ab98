// What the slots that the bridge gives to TensorFlow have in common: calls of Python, whose answers become
// statuses of TensorFlow, and open files.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <exception>
#include <string>

#include "bridge_upcalls.h"
#include "fork_lock.h"
#include "modular_tf/filesystem.h"
#include "owned_error.h"

namespace mtf::bridge {

// An answer that frees what it holds.
struct Answer : mtf_bridge_answer {
  Answer() : mtf_bridge_answer{} { code = TF_INTERNAL; }
  ~Answer() {
    std::free(text);
    std::free(names.bytes);
  }
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
};

// Sets a status of TensorFlow, which is no TF_Status of this package.
void set_status(TF_Status* status, int code, const char* message);

// A plugin's message as TensorFlow can give it to Python: bytes that are not UTF-8 become \xNN.
std::string printable(const std::string& text);

// A call into Python that is under way. False where the bridge is closed.
class Call {
 public:
  Call();
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  explicit operator bool() const { return is_open_; }

 private:
  bool is_open_;
};

// Reports in a status that the process ends.
void refuse(TF_Status* status);

// Sets the status of an answer.
void finish(TF_Status* status, const Answer& answer);

// Makes a call of Python unless the bridge is closed, and sets the status. Returns whether it is OK.
template <class Upcall>
bool ask(TF_Status* status, Answer& answer, Upcall&& upcall) {
  const Call call;
  if (!call) {
    refuse(status);
    return false;
  }
  upcall();
  finish(status, answer);
  return answer.code == TF_OK;
}

// Runs a slot; what the C++ library throws becomes a status.
template <class Slot>
void catch_exceptions(TF_Status* status, Slot&& slot) {
  try {
    slot();
  } catch (const std::exception& error) {
    set_status(status, TF_RESOURCE_EXHAUSTED, error.what());
  }
}

// -- open files -------------------------------------------------------------------------------------------

// Lets Python forget an open file; 0 is none.
void release(int64_t file);

// Takes the lock of a file. Its holder may wait for the GIL, which this thread may hold, since
// TensorFlow keeps it in some calls: so the wait is Python's, which gives it away. To a signal
// handler that has interrupted the holder it returns no lock, and a status that says so.
UniqueCallLock lock_of(CallLock& lock, int64_t file, TF_Status* status);

// Opens a file of TensorFlow's; sets the wrapper's pointer where the status is OK.
void open_reader(const TF_Filesystem*, const char* path, TF_RandomAccessFile* file, TF_Status*);
void open_writer(const TF_Filesystem*, const char* path, TF_WritableFile* file, TF_Status*);
void open_appender(const TF_Filesystem*, const char* path, TF_WritableFile* file, TF_Status*);

TF_RandomAccessFileOps reader_table();
TF_WritableFileOps writer_table();

// Closes the files that are open for writing, when no call of TensorFlow's comes through any more.
void close_writers();

// Fills in the entry of a scheme; a table that there is no memory for stays NULL, which TensorFlow
// refuses.
void fill_tables(TF_FilesystemPluginOps* entry, const char* scheme);

}  // namespace mtf::bridge
