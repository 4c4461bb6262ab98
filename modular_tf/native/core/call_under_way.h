// Which call into a plugin this thread is in: written around each call, read by signal handlers on
// the same thread. It costs a few stores.
#pragma once

#include <cstdint>

#include "plugin_call.h"

struct mtf_plugin {
  const char* name;
  const char* path;
  const char* record;
};

namespace mtf {

// Lies on the stack of the caller. All that it is given outlives it.
class CallUnderWay {
 public:
  // `plugin` may be NULL where it is not known yet; `subject` is what the call is about: a path or
  // the name of a device, or NULL.
  CallUnderWay(const mtf_plugin* its_plugin, const char* its_operation,
               const char* its_subject = nullptr) noexcept
      : plugin(its_plugin), operation(its_operation), subject(its_subject), outer_(innermost_) {
    innermost_ = this;
  }
  ~CallUnderWay() { innermost_ = outer_; }
  CallUnderWay(const CallUnderWay&) = delete;
  CallUnderWay& operator=(const CallUnderWay&) = delete;

  // The innermost call of this thread; NULL: it is in none. [signal handlers]
  static const CallUnderWay* of_this_thread() noexcept { return innermost_; }

  // For a child that is forked in the middle of a call: the call goes on in the parent alone.
  static void leave_all() noexcept { innermost_ = nullptr; }

  // Bytes that the innermost call of this thread has read, written or mapped, for who measures it.
  static void add_bytes(uint64_t count) noexcept {
    if (innermost_ != nullptr) innermost_->bytes_ += count;
  }
  uint64_t bytes() const noexcept { return bytes_; }

  const mtf_plugin* const plugin;
  const char* const operation;
  const char* const subject;

 private:
  // Fixed storage: no access allocates, which a handler must not do, and none calls a function.
  __attribute__((tls_model("initial-exec"), visibility("hidden")))
  static inline __thread const CallUnderWay* innermost_ = nullptr;

  const CallUnderWay* const outer_;
  mutable uint64_t bytes_ = 0;
};

}  // namespace mtf
