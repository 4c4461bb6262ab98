// The handles that plugins get: numbers, not addresses.
//
// A plugin may use a handle after its end, end it twice, or pass something else: each is found out
// without a look at memory that may be somebody else's by now.
#pragma once

#include <cstdint>

namespace mtf::kernels {

enum class HandleKind : uint8_t {
  kTensor = 1,
  kKernelBuilder,
  kConstruction,
  kContext,
  kDone,
  kOpBuilder,
  kVariableLocks,
};

// A new handle of an object; NULL where there is no memory for it. [any thread]
void* new_handle(HandleKind kind, void* object) noexcept;
// The object of a live handle, else NULL. [any thread]
void* find_object(const void* handle, HandleKind kind) noexcept;
// Ends a handle and returns its object, to exactly one caller; NULL where it is not alive.
void* end_handle(const void* handle, HandleKind kind) noexcept;
// How many handles of a kind are alive. [any thread]
int64_t count_handles(HandleKind kind) noexcept;

// Tells the call of this thread, or the log where it is in none, that `function` was given a handle
// that is not alive. NULL is an ordinary mistake, and told too.
void report_misuse(const char* function, const void* handle, HandleKind kind) noexcept;

// The object of a handle that a plugin passed to `function`; NULL after reporting its misuse.
template <class Object>
Object* checked(const void* handle, HandleKind kind, const char* function) noexcept {
  void* object = find_object(handle, kind);
  if (object == nullptr) report_misuse(function, handle, kind);
  return static_cast<Object*>(object);
}

}  // namespace mtf::kernels
