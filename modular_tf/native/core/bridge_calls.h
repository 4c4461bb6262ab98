// Calls of the bridge's slots into Python, and their answers as statuses of TensorFlow.
#pragma once

#include <cstdlib>
#include <string>

#include "bridge_upcalls.h"
#include "modular_tf/status.h"
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

// Sets the status of an answer.
void finish(TF_Status* status, const Answer& answer);

// Makes a call of Python unless the bridge is closed, and sets the status. Returns whether it is OK.
template <class Upcall>
bool ask(TF_Status* status, Answer& answer, Upcall&& upcall) {
  const Call call;
  if (!call) {
    set_status(status, TF_FAILED_PRECONDITION, "modular_tf: the process ends");
    return false;
  }
  upcall();
  finish(status, answer);
  return answer.code == TF_OK;
}

}  // namespace mtf::bridge
