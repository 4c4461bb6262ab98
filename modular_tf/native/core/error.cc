#include "error.h"

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <utility>

#include "copied_text.h"

namespace mtf {
namespace {

char no_memory_text[] = "out of memory";
mtf_error no_memory = {TF_RESOURCE_EXHAUSTED, 0, 0, no_memory_text, 0};

std::atomic<int64_t> alive{0};

thread_local mtf_error* kept_error = nullptr;  // of a function that returns none

// All fields are set here: an error is never changed later, since it may be the shared one.
Error make(mtf_error fields, const char* message) {
  auto* error = static_cast<mtf_error*>(std::malloc(sizeof(mtf_error)));
  char* copy = mtf_copied_text(message != nullptr ? message : "");
  if (error == nullptr || copy == nullptr) {
    std::free(error);
    std::free(copy);
    return Error(&no_memory);
  }
  fields.message = copy;
  *error = fields;
  alive.fetch_add(1, std::memory_order_relaxed);
  return Error(error);
}

}  // namespace

Error make_error(int code, const char* message) { return make({code, 0, 0, nullptr, 0}, message); }

Error make_closed_error(const char* message) {
  return make({TF_FAILED_PRECONDITION, 0, 1, nullptr, 0}, message);
}

Error make_rule_error(int rule, const char* message) {
  return make({TF_INTERNAL, 0, 0, nullptr, rule}, message);
}

Error make_error_of(int code, int rule, const char* message) {
  return make({code, 0, 0, nullptr, rule}, message);
}

Error take_status(TF_Status* status) {
  const int32_t mark = status->mark;
  Error error = status->code == TF_OK ? nullptr
                                  : make({status->code, mark == kThrownInWorker ? 1 : 0,
                                          mark == kClosedInWorker ? 1 : 0, nullptr, mark > 0 ? mark : 0},
                                         status->message);
  mtf_status_clear(status);
  return error;
}

std::nullptr_t fail_with(mtf_error* error) {
  mtf_error_free(std::exchange(kept_error, error));
  return nullptr;
}

Error error_of_exception(Thrower thrower) {
  const int thrown = thrower == Thrower::kPlugin ? 1 : 0;
  try {
    throw;
  } catch (const std::bad_alloc& error) {
    if (thrower == Thrower::kHost) return Error(&no_memory);
    return make({TF_INTERNAL, thrown, 0, nullptr, 0}, error.what());
  } catch (const std::exception& error) {
    return make({TF_INTERNAL, thrown, 0, nullptr, 0}, error.what());
  } catch (...) {
    return make({TF_INTERNAL, thrown, 0, nullptr, 0}, "an exception that is not a std::exception");
  }
}

}  // namespace mtf

extern "C" void mtf_error_free(mtf_error* error) {
  if (error == nullptr || error == &mtf::no_memory) return;
  std::free(error->message);
  std::free(error);
  mtf::alive.fetch_sub(1, std::memory_order_relaxed);
}

extern "C" int64_t mtf_errors_alive(void) { return mtf::alive.load(); }

extern "C" mtf_error* mtf_take_error(void) { return std::exchange(mtf::kept_error, nullptr); }
