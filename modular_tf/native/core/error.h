/* How a call's failure reaches Python: a heap value, NULL when the call succeeded. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mtf_error {
  int32_t code;      /* TF_Code; never 0 */
  int32_t thrown;    /* 1: a C++ exception left the plugin, `message` says which */
  int32_t closed;    /* 1: the plugin was not called: the file or filesystem is closed */
  char* message;     /* bytes as the plugin wrote them, never NULL */
  int32_t rule;      /* nnn of the rule SE-nnn that the plugin broke, 1000 + nnn of KN-nnn, 2000 + nnn
                      * of LD-nnn; 0: none */
} mtf_error;

/* Free an error. [any thread] NULL is allowed. */
void mtf_error_free(mtf_error* error);

/* What the last failed function of this thread that returns no error has to say; the caller frees
 * it. NULL where none failed since. */
mtf_error* mtf_take_error(void);

/* How many errors of this process were made and not freed. Where memory runs out, one error that is
 * never freed stands for all; it does not count. [any thread] */
int64_t mtf_errors_alive(void);

#ifdef __cplusplus
}

#include <cstddef>
#include <utility>

#include "status.h"

// An mtf_error with an owner: it is freed at its end unless ownership is passed on.

namespace mtf {

class [[nodiscard]] Error {
 public:
  Error() = default;
  Error(std::nullptr_t) {}  // success
  explicit Error(mtf_error* error) : error_(error) {}
  Error(Error&& other) noexcept : error_(other.release()) {}
  Error& operator=(Error&& other) noexcept {
    std::swap(error_, other.error_);
    return *this;
  }
  ~Error() {
    if (error_ != nullptr) mtf_error_free(error_);
  }

  explicit operator bool() const& { return error_ != nullptr; }
  explicit operator bool() && { return error_ != nullptr; }  // else a temporary would release it
  int code() const { return error_ == nullptr ? 0 : error_->code; }
  bool is_thrown() const { return error_ != nullptr && error_->thrown != 0; }
  bool is_closed() const { return error_ != nullptr && error_->closed != 0; }
  const char* message() const { return error_ == nullptr ? "" : error_->message; }
  mtf_error* release() { return std::exchange(error_, nullptr); }
  // The caller of an entry takes it over.
  operator mtf_error*() && { return release(); }

 private:
  mtf_error* error_ = nullptr;
};

// What is done with an error that cannot be reported.
inline void drop(Error) {}

// Makes an error with a copy of `message`. Where there is no memory for it, the error says that; it
// is one for all, and is never written to.
Error make_error(int code, const char* message);

// The error of a use after close. `message` says what is closed.
Error make_closed_error(const char* message);

// The error of a plugin that broke the rule SE-nnn while it worked.
Error make_rule_error(int rule, const char* message);

// The error of a kernel: `rule` is a number of mtf_error.rule.
Error make_error_of(int code, int rule, const char* message);

// TF_Status.mark of an error that a worker told: what mtf_error says beside code and message. A
// positive mark is mtf_error.rule.
constexpr int32_t kThrownInWorker = -1;
constexpr int32_t kClosedInWorker = -2;

// Turns a status into an error and releases what the status holds. NULL when the status is OK.
Error take_status(TF_Status* status);

// Keeps `error` for mtf_take_error; returns NULL.
std::nullptr_t fail_with(mtf_error* error);

enum class Thrower { kPlugin, kHost };

// Within a catch block: the exception as an error.
Error error_of_exception(Thrower thrower);

}  // namespace mtf
#endif
