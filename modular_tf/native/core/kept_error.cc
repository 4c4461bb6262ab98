// What a function that returns no error had to say, kept for its thread.
#include <utility>

#include "owned_error.h"

namespace mtf {
namespace {

thread_local mtf_error* kept_error = nullptr;

}  // namespace

std::nullptr_t fail_with(mtf_error* error) {
  mtf_error_free(std::exchange(kept_error, error));
  return nullptr;
}

}  // namespace mtf

extern "C" mtf_error* mtf_take_error(void) { return std::exchange(mtf::kept_error, nullptr); }
