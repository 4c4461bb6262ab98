// What every function that plugins call has in common: no exception leaves it, and it sets a status.
#pragma once

#include <cxxabi.h>

#include <cstdarg>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>

#include "copied_text.h"
#include "host_table.h"
#include "misuse.h"
#include "modular_tf/status.h"

namespace mtf::kernels {

// -- the first failure of a construction or call --

inline void set_failure(mtf_kernel_failure* failure, int32_t code, int32_t rule,
                        const char* message) noexcept {
  if (failure->code != TF_OK) return;  // the first one counts
  *failure = {code, rule, mtf_copied_text(message)};
}

// What a plugin says with `…_Failure`; OK is no failure.
inline void set_failure_of_plugin(mtf_kernel_failure* failure, const TF_Status* status,
                                  int32_t rule) noexcept {
  if (TF_GetCode(status) != TF_OK) {
    set_failure(failure, TF_GetCode(status), rule, TF_Message(status));
  }
}

inline void set_failure_of_misuse(mtf_kernel_failure* failure, const MisuseRecord& misuse) noexcept {
  if (misuse.rule != kRuleNone) set_failure(failure, TF_INTERNAL, misuse.rule, misuse.text);
}

// -- what a function of the C interface reports --

inline void succeed(TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }

__attribute__((format(printf, 3, 4)))
inline void fail(TF_Status* status, TF_Code code, const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  TF_SetStatus(status, code, text);
}

// Likewise, of what breaks a rule; the message cites it, and reaches the caller with the plugin's failure.
__attribute__((format(printf, 4, 5)))
inline void fail_by(Rule rule, TF_Status* status, TF_Code code, const char* format, ...) {
  char text[480];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fail(status, code, "%s (rule KN-%03d)", text, static_cast<int>(rule));
}

// A misuse that no status can tell, or that its caller may not look at.
__attribute__((format(printf, 2, 3)))
inline void report_misuse_by(Rule rule, const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  report_misuse_text(rule, text);
}

// Runs `body`; `otherwise` where memory has run out. Cancellation of the thread goes on.
template <class Result, class Body>
Result entry(Result otherwise, Body&& body) {
  try {
    return body();
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (const std::length_error& error) {
    report_misuse_by(kRuleArguments, "%s", error.what());
  } catch (const std::exception& error) {
    report_misuse_by(kRuleArguments, "the host failed: %s", error.what());
  } catch (...) {
    report_misuse_by(kRuleArguments, "an exception of an unknown type");
  }
  return otherwise;
}

// Runs `body`, which sets the status, and may call back into the plugin.
template <class Body>
void with_status(TF_Status* status, Body&& body) {
  try {
    body();
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (const std::bad_alloc&) {
    TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "the host has no memory");
  } catch (const std::length_error& error) {
    fail(status, TF_INVALID_ARGUMENT, "%s", error.what());
  } catch (const std::exception& error) {
    fail(status, TF_INTERNAL, "an exception: %s", error.what());
  } catch (...) {
    fail(status, TF_INTERNAL, "an exception of an unknown type");
  }
}

}  // namespace mtf::kernels
