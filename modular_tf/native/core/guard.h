// A guarded call: a fresh OK status in, a C++ exception or a failed status out as an error.
//
// Plugins are C by contract and C++ in practice; an exception that leaves one through our C frames
// would end the process. Every call into a plugin goes through guarded(). What our own code throws is
// for the barrier (barrier.h): it is nothing that a plugin did.
#pragma once

#include <cxxabi.h>

#include <atomic>
#include <utility>

#include "call_counts.h"
#include "plugin_call.h"
#include "float_state.h"
#include "error.h"
#include "status.h"

namespace mtf {

// The status of one call.
class CallStatus {
 public:
  CallStatus() = default;
  CallStatus(const CallStatus&) = delete;
  CallStatus& operator=(const CallStatus&) = delete;
  ~CallStatus() { mtf_status_clear(&status_); }
  TF_Status* get() { return &status_; }

 private:
  TF_Status status_ = {};
};

// Runs `call()`, code of the host's that a plugin has called; returns what it threw.
template <class Call>
Error without_exceptions(Call&& call) {
  try {
    std::forward<Call>(call)();
    return nullptr;
  } catch (abi::__forced_unwind&) {
    throw;  // pthread_exit and cancellation must go on unwinding
  } catch (...) {
    return error_of_exception(Thrower::kHost);
  }
}

// Called where a call into a plugin does not return, since its thread ends; NULL: nobody wants that
// (process_end.cc).
inline std::atomic<void (*)() noexcept> on_ended_thread{nullptr};

// Runs `call(TF_Status*)`, code of a plugin; returns NULL when it left the status OK.
template <class Call>
__attribute__((always_inline)) inline Error without_measure(Call& call) {
  CallStatus status;
  try {
    const KeptFloatState kept;
    call(status.get());
  } catch (abi::__forced_unwind&) {
    if (const auto tell = on_ended_thread.load()) tell();
    throw;
  } catch (...) {
    return error_of_exception(Thrower::kPlugin);
  }
  return take_status(status.get());
}

template <class Call>
__attribute__((noinline, cold)) Error with_measure(const CallUnderWay& under_way, Call& call) {
  CallMeasure measure(under_way);
  Error error = without_measure(call);
  measure.ended_with(error.code());
  return error;
}

// The same; `under_way` says which call it is, and lasts as long. Who is not measured pays a branch.
template <class Call>
inline Error guarded(const CallUnderWay& under_way, Call&& call) {
  if (__builtin_expect(measured.load(std::memory_order_relaxed) == 0, 1)) {
    return without_measure(call);
  }
  return with_measure(under_way, call);
}

// Gives memory back to the plugin. Destructors do, which nothing may leave.
inline void free_by_plugin(const mtf_plugin* plugin, void (*plugin_free)(void*), void* memory) {
  drop(guarded({plugin, kPluginMemoryFree}, [&](TF_Status*) { plugin_free(memory); }));
}

}  // namespace mtf
