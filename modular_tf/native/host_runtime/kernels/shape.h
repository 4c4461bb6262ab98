// Shapes as far as they are known, and what shape functions do with them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mtf::kernels {

constexpr int64_t kUnknown = -1;

struct Shape {
  bool has_rank = false;
  std::vector<int64_t> dims;  // kUnknown for sizes that are not known

  int64_t rank() const { return has_rank ? static_cast<int64_t>(dims.size()) : kUnknown; }
};

// Why a shape is refused, for the author of the function.
struct ShapeError {
  std::string text;
};

// Which ranks a function accepts.
enum class RankBound { kEqual, kAtLeast, kAtMost };

// The shape with what is known by then: an unknown one gets a rank that must be equal. Throws
// ShapeError.
Shape with_rank(const Shape& shape, RankBound bound, int64_t rank);

// From `start` to before `end`, each from the end where it is negative. Throws ShapeError.
Shape subshape(const Shape& shape, int64_t start, int64_t end);

// Unknown where one of them is. Throws ShapeError.
Shape concatenated(const Shape& first, const Shape& second);

// The size of a dimension, counted from the end where `index` is negative; kUnknown outside too.
int64_t dimension_of(const Shape& shape, int64_t index);

}  // namespace mtf::kernels
