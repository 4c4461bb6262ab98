#include "strides.h"

#include <algorithm>
#include <string>

#include "kernel/status.h"

namespace host_kernels {
namespace {

// The size of a dimension, counted from the last one; 1 where there is none.
int64_t size_from_end(const kernel::Shape& shape, size_t at) {
  return at < shape.size() ? shape[shape.size() - 1 - at] : 1;
}

}  // namespace

Strides strides_of(const kernel::Shape& shape) {
  Strides strides(shape.size());
  int64_t step = 1;
  for (size_t at = shape.size(); at-- > 0; step *= shape[at]) strides[at] = step;
  return strides;
}

kernel::Shape broadcast_shape(const char* op, const kernel::Shape& left,
                              const kernel::Shape& right) {
  kernel::Shape wide(std::max(left.size(), right.size()));
  for (size_t at = 0; at < wide.size(); ++at) {
    const int64_t one = size_from_end(left, at);
    const int64_t other = size_from_end(right, at);
    if (one != other && one != 1 && other != 1) {
      throw kernel::Failed(TF_INVALID_ARGUMENT,
                           std::string(op) + ": the shapes " + kernel::text_of(left) + " and " +
                               kernel::text_of(right) + " cannot be broadcast to one");
    }
    wide[wide.size() - 1 - at] = one == 1 ? other : one;
  }
  return wide;
}

Strides broadcast_strides(const kernel::Shape& shape, const kernel::Shape& wide) {
  Strides own = strides_of(shape);
  for (size_t at = 0; at < shape.size(); ++at) {
    if (shape[at] == 1) own[at] = 0;
  }
  own.insert(own.begin(), wide.size() - shape.size(), 0);
  return own;
}

}  // namespace host_kernels
