// The border between Python and the core: no C++ exception crosses it.
//
// Python calls no entry of the core directly. For every function that the headers declare to Python,
// build_core.py generates one with a barrier around it (_barrier.cc), and Python gets that. So an
// entry needs no code of its own for what it, or the C++ library, may throw.
//
// What Python gets for an exception: the error, where an entry returns one. Else nothing, NULL, 0, or
// what FailedResult says, and mtf_take_error has the error. Where memory has run out there is an
// error that needs none.
#pragma once

#include <cxxabi.h>

#include <type_traits>

#include "executor.h"
#include "library.h"
#include "error.h"
#include "process_end.h"

namespace mtf {

// Numbers that stand for a failure where 0 is an answer.
template <auto Entry>
struct FailedResult {
  static constexpr int value = 0;
};
struct MinusOne {
  static constexpr int value = -1;
};
template <> struct FailedResult<mtf_event_poll> : MinusOne {};
template <> struct FailedResult<mtf_event_status> : MinusOne {};
template <> struct FailedResult<mtf_exit_without_inherited_destructors> : MinusOne {};
template <> struct FailedResult<mtf_memory_free_of_host> : MinusOne {};
template <> struct FailedResult<mtf_report_crashes> : MinusOne {};
template <> struct FailedResult<mtf_leave_on_second_interrupt> : MinusOne {};
template <> struct FailedResult<mtf_start_ended_child> : MinusOne {};
template <> struct FailedResult<mtf_stream_poll> : MinusOne {};
template <> struct FailedResult<mtf_tell_of_ended_calls> : MinusOne {};
template <> struct FailedResult<mtf_try_strlen> : MinusOne {};

template <auto Entry>
struct Barrier;

template <class Result, class... Arguments, Result (*Entry)(Arguments...)>
struct Barrier<Entry> {
  static Result call(Arguments... arguments) {
    try {
      return Entry(arguments...);
    } catch (abi::__forced_unwind&) {
      throw;  // as in guard.h
    } catch (...) {
      return failed(error_of_exception(Thrower::kHost));
    }
  }

 private:
  static Result failed(Error error) {
    if constexpr (std::is_same_v<Result, mtf_error*>) {
      return error.release();
    } else {
      fail_with(error.release());
      if constexpr (std::is_pointer_v<Result>) return nullptr;
      if constexpr (std::is_integral_v<Result>) return FailedResult<Entry>::value;
    }
  }
};

}  // namespace mtf
