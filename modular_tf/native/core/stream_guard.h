/* Functions of C++ streams that plugins may be given in place of the C++ library's. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* The function that stands in for the one with this mangled name; it does the same, but for what
 * crashes the caller. NULL where there is none, or, but for a plugin that is bound to its own scope
 * first, where the name is defined for the whole process: the dynamic linker would bind a plugin to
 * that. [any thread]
 *
 * std::istream::read  returns at once for a stream that is not there, and writes no more than the
 *                     caller of the plugin's read has asked for.
 * std::ostream::tellp says 0 for an XML document in memory that has no element, which the caller
 *                     would look for without a check that there is one. */
void* mtf_guarded_stream_function(const char* name, int own_scope_first);

#ifdef __cplusplus
}

#include <cstddef>

// The memory that a plugin's read may write to, for the function that stands in for
// `std::istream::read` (stream_guard.h).

namespace mtf {

// While it lives, what this thread reads from a stream to the begin of the memory stays within it.
class ReadBounds {
 public:
  ReadBounds(char* buffer, size_t size);
  ~ReadBounds();
  ReadBounds(const ReadBounds&) = delete;
  ReadBounds& operator=(const ReadBounds&) = delete;

 private:
  char* buffer_;  // of the read around this one
  size_t size_;
};

}  // namespace mtf
#endif
