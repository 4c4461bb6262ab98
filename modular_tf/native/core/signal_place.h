// Where a signal came, as its handler is told.
#pragma once

#include <ucontext.h>

#include <cstdint>

#include "library.h"

namespace mtf {

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

}  // namespace mtf
