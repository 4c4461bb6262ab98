// The memory that a plugin's read may write to, for the function that stands in for
// `std::istream::read` (stream_guard.h).
#pragma once

#include <cstddef>

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
