/* Plugins by the names that users know them by, for who has to name one while a call of its runs. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is told of a plugin. It is never freed: handlers of signals read it at any time. */
typedef struct mtf_plugin mtf_plugin;

/* `name` is the plugin's for users, `path` its file. `record` is what begins the note that the process
 * leaves of a call in which it ended (process_end.h); empty: it leaves none. All are copied. NULL and
 * a kept error where there is no memory. [any thread] */
const mtf_plugin* mtf_plugin_new(const char* name, const char* path, const char* record);

/* From now on the code of the object that is mapped at `base`, for good, is the plugin's: where a
 * process ends in it outside of calls, the plugin is named (process_end.h). 0 on success, -1 where
 * there is no more room. [any thread] */
int mtf_plugin_has_code(const mtf_plugin* plugin, uintptr_t base);

#ifdef __cplusplus
}

#include <cstdint>

// Which call into a plugin this thread is in: written around each call, read by signal handlers on
// the same thread. It costs a few stores.

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
#endif
