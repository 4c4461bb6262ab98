// A guarded call: a fresh OK status in, a C++ exception or a failed status out as mtf_error.
//
// Plugins are C by contract and C++ in practice; an exception that leaves one through our C frames
// would end the process. Every call into a plugin goes through guarded().
#ifndef MODULAR_TF_CORE_GUARD_H_
#define MODULAR_TF_CORE_GUARD_H_

#include <cxxabi.h>

#include <exception>
#include <utility>

#include "error.h"
#include "status.h"

namespace mtf {

// Makes an error with a copy of `message`; never NULL (a failed allocation ends in a shared constant).
mtf_error* make_error(int code, const char* message, bool thrown = false);

// An error of something that is closed.
mtf_error* make_closed_error(const char* message);

// An error of a plugin that broke the rule SE-nnn while it worked.
mtf_error* make_rule_error(int rule, const char* message);

// Turns a status into an error and releases what the status holds. NULL when the status is OK.
mtf_error* take_status(TF_Status* status);

// Runs `call(TF_Status*)`; returns NULL when it left the status OK.
template <class Call>
mtf_error* guarded(Call&& call) {
  TF_Status status = {};
  mtf_error* thrown = nullptr;
  try {
    std::forward<Call>(call)(&status);
  } catch (abi::__forced_unwind&) {
    throw;  // pthread_exit and cancellation must go on unwinding
  } catch (const std::exception& e) {
    thrown = make_error(13, e.what(), true);
  } catch (...) {
    thrown = make_error(13, "an exception that is not a std::exception", true);
  }
  mtf_error* failed = take_status(&status);
  if (thrown == nullptr) return failed;
  mtf_error_free(failed);
  return thrown;
}

}  // namespace mtf
#endif
