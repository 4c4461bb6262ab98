// Forks wait for calls of the plugin, and calls wait for forks.
//
// A fork copies locks, but no thread that would release them: of all threads the child has only the
// one that forks. So a fork waits until no thread is in a call, where the locks are.
#pragma once

namespace ram {

// From now on forks wait for calls. False: the process has no memory for it.
bool watch_forks();

// A call of the plugin, while it lasts. [any thread]
class Call {
 public:
  Call();
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
};

template <auto slot>
struct InCall;

template <class Result, class... Arguments, Result (*slot)(Arguments...)>
struct InCall<slot> {
  static Result run(Arguments... arguments) {
    const Call call;
    return slot(arguments...);
  }
};

// The function for the host's table that runs `slot` as a call.
template <auto slot>
constexpr auto in_call = &InCall<slot>::run;

}  // namespace ram
