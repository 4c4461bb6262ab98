// The barrier around entries that all throw: what its caller gets.
//
// Generated beside it: throwing_stubs.h has a stub for every entry, each of which calls throw_it();
// throwing_calls.h has a line CALL(name) for each. With _barrier.h the name is that of the guarded
// function. Prints a line of JSON for each entry and exception.
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <type_traits>

#include "barrier.h"

namespace {

enum class Thrown { kNoMemory, kStandard, kOther, kThreadExit } thrown;

[[noreturn]] void throw_it() {
  switch (thrown) {
    case Thrown::kNoMemory: throw std::bad_alloc();
    case Thrown::kStandard: throw std::runtime_error("thrown by the host");
    case Thrown::kOther: throw 42;
    default: pthread_exit(nullptr);
  }
}

}  // namespace

#include "throwing_stubs.h"

extern "C" {
#include "_barrier.h"
}

namespace {

void show(const char* name, long long result, mtf_error* error) {
  if (error == nullptr) {
    std::printf("{\"entry\": \"%s\"}\n", name);
    return;
  }
  std::printf("{\"entry\": \"%s\", \"result\": %lld, \"code\": %d, \"message\": \"%s\"}\n", name, result,
              error->code, error->message);
  mtf_error_free(error);
}

template <class Result, class... Arguments>
void call(const char* name, Result (*entry)(Arguments...)) {
  if constexpr (std::is_same_v<Result, mtf_error*>) {
    show(name, 0, entry(Arguments{}...));
  } else if constexpr (std::is_void_v<Result>) {
    entry(Arguments{}...);
    show(name, 0, mtf_take_error());
  } else if constexpr (std::is_pointer_v<Result>) {
    const bool is_null = entry(Arguments{}...) == nullptr;
    show(name, is_null ? 0 : 1, mtf_take_error());
  } else {
    const auto result = static_cast<long long>(entry(Arguments{}...));
    show(name, result, mtf_take_error());
  }
}

void call_all() {
#define CALL(name) call(#name, name);
#include "throwing_calls.h"
#undef CALL
}

// A thread that a plugin ends in the middle of an entry ends, and nothing else does.
void call_each_on_a_thread() {
  thrown = Thrown::kThreadExit;
#define CALL(name)                                                           \
  {                                                                          \
    pthread_t thread;                                                        \
    void* result = &thrown;                                                  \
    const auto run = [](void*) -> void* { return call(#name, name), &thrown; }; \
    if (pthread_create(&thread, nullptr, run, nullptr) != 0) std::abort();   \
    pthread_join(thread, &result);                                           \
    if (result != nullptr) std::abort();                                     \
  }
#include "throwing_calls.h"
#undef CALL
}

}  // namespace

int main() {
  for (const Thrown each : {Thrown::kNoMemory, Thrown::kStandard, Thrown::kOther}) {
    thrown = each;
    call_all();
  }
  call_each_on_a_thread();
  std::printf("{\"alive\": %lld}\n", static_cast<long long>(mtf_errors_alive()));
}
