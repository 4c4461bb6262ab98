// Whose code it is: plugins by the addresses of their code, for handlers of signals and of exit().
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugin_call.h"

namespace mtf {

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
