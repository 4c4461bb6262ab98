// Whose code it is: plugins by the addresses of their code, for handlers of signals and of exit().
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>

#include "library.h"
#include "plugin_call.h"

namespace mtf {

// Where a signal came.
struct SignalPlace {
  uintptr_t instruction = 0;
  uintptr_t stack = 0;
  uintptr_t caller = 0;  // where known without unwinding: at the first instruction of a function
};

// `context` is the third argument of the handler. [signal handlers]
inline SignalPlace signal_place(const void* context) {
  SignalPlace place;
#if defined(__x86_64__)
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  place.instruction = static_cast<uintptr_t>(registers[REG_RIP]);
  place.stack = static_cast<uintptr_t>(registers[REG_RSP]);
  const auto* top = reinterpret_cast<const void*>(place.stack);
  if (mtf_try_read(top, &place.caller, sizeof place.caller) == 0) place.caller = 0;
#elif defined(__aarch64__)
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
  place.instruction = registers.pc;
  place.stack = registers.sp;
  place.caller = registers.regs[30];
#else
  (void)context;
#endif
  return place;
}

// The plugin whose code has the address; NULL: none's. [signal handlers]
const mtf_plugin* plugin_at(uintptr_t address) noexcept;

// Makes the first stack trace, which allocates, so that those of handlers do not.
void prepare_stack_traces() noexcept;

// The plugin whose code is the innermost on the stack of this thread; NULL: none's. `context` is what
// a handler of a signal was given, or NULL. Without glibc 2.35 the stack of a signal is not followed:
// that could wait for a lock. [signal handlers]
const mtf_plugin* plugin_on_stack(const void* context) noexcept;

// Plugins whose code can cancel threads: it imports pthread_cancel, or a function that finds it. `found`
// gets the first ones, at most as many as it has room for; returns how many. [signal handlers]
size_t plugins_that_may_cancel(const mtf_plugin** found, size_t most) noexcept;

}  // namespace mtf
