// Statuses of the host's functions as exceptions, and exceptions as statuses.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "modular_tf/status.h"

namespace kernel {

// A failure with the status code that the host shall see.
class Failed : public std::runtime_error {
 public:
  Failed(TF_Code status, const std::string& message) : std::runtime_error(message), code(status) {}
  const TF_Code code;
};

// A status that is passed to functions of the host. One thread at a time.
class Status {
 public:
  Status() : raw_(TF_NewStatus()) {
    if (raw_ == nullptr) throw std::bad_alloc();
  }
  Status(const Status&) = delete;
  Status& operator=(const Status&) = delete;
  ~Status() { TF_DeleteStatus(raw_); }

  TF_Status* get() const { return raw_; }

  // Throws Failed unless the last function has succeeded.
  void check() const {
    if (TF_GetCode(raw_) != TF_OK) throw Failed(TF_GetCode(raw_), TF_Message(raw_));
  }

 private:
  TF_Status* const raw_;
};

// Runs `body` so that no exception reaches the host, which is C. `fail(code, message)` is called with
// what it throws.
template <class Body, class Fail>
void guarded(Body&& body, Fail&& fail) noexcept {
  try {
    body();
  } catch (const Failed& failed) {
    fail(failed.code, failed.what());
  } catch (const std::bad_alloc&) {
    fail(TF_RESOURCE_EXHAUSTED, "out of host memory");
  } catch (const std::exception& error) {
    fail(TF_INTERNAL, error.what());
  } catch (...) {
    fail(TF_INTERNAL, "an exception that is no std::exception");
  }
}

}  // namespace kernel
