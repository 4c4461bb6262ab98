// Why an operation did not work. Inside the plugin faults travel as values; TF_Status is for the
// outside.
#pragma once

#include <exception>
#include <new>

#include "modular_tf/status.h"

namespace ram {

enum class Fault {
  kNone,
  kMissing,
  kParentIsFile,
  kIsDirectory,
  kNotDirectory,
  kExists,
  kNotEmpty,
  kIsRoot,
  kEmptyFile,
  kEndOfFile,
  kClosed,
  kNoSpace,
  kNoMemory,
  kUnknownOption,
  kWrongType,
  kBadValue,
  kInternal,
};

TF_Code code_of(Fault fault);
const char* text_of(Fault fault);

// Runs `body`, which returns a Fault; no exception leaves it, since the caller is C.
template <class Body>
Fault caught(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Fault::kNoMemory;
  } catch (const std::exception&) {
    return Fault::kInternal;
  }
}

}  // namespace ram
