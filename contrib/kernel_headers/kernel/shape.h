// Shapes: sizes of the dimensions, the last one being contiguous in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kernel {

using Shape = std::vector<int64_t>;

inline int64_t n_elements(const Shape& shape) {
  int64_t total = 1;
  for (const int64_t size : shape) total *= size;
  return total;
}

// "[2,3]", for messages.
inline std::string text_of(const Shape& shape) {
  std::string text = "[";
  for (const int64_t size : shape) {
    if (text.size() > 1) text += ',';
    text += std::to_string(size);
  }
  return text + ']';
}

}  // namespace kernel
