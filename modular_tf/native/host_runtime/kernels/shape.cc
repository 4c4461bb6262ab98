#include "shape.h"

#include <algorithm>

#include "shape_inference.h"

namespace mtf::kernels {
namespace {

bool holds(RankBound bound, int64_t found, int64_t rank) {
  switch (bound) {
    case RankBound::kEqual: return found == rank;
    case RankBound::kAtLeast: return found >= rank;
    case RankBound::kAtMost: return found <= rank;
  }
  return false;
}

const char* words_of(RankBound bound) {
  switch (bound) {
    case RankBound::kEqual: return "rank ";
    case RankBound::kAtLeast: return "at least rank ";
    case RankBound::kAtMost: return "at most rank ";
  }
  return "";
}

// Where a part of a shape begins or ends, as its index.
int64_t bound_in(int64_t rank, int64_t bound, const char* which) {
  const int64_t index = bound < 0 ? rank + bound : std::min(bound, rank);
  if (index >= 0) return index;
  throw ShapeError{std::string("Subshape ") + which + " out of bounds: " + std::to_string(bound) +
                   ", for shape with rank " + std::to_string(rank)};
}

}  // namespace

Shape with_rank(const Shape& shape, RankBound bound, int64_t rank) {
  if (rank > MTF_MOST_DIMENSIONS && bound != RankBound::kAtMost) {
    throw ShapeError{"Rank cannot exceed " + std::to_string(MTF_MOST_DIMENSIONS)};
  }
  if (shape.has_rank && !holds(bound, shape.rank(), rank)) {
    throw ShapeError{std::string("Shape must be ") + words_of(bound) + std::to_string(rank) +
                     " but is rank " + std::to_string(shape.rank())};
  }
  if (shape.has_rank || bound != RankBound::kEqual) return shape;
  if (rank < 0) throw ShapeError{"a rank of " + std::to_string(rank) + " does not exist"};
  return {true, std::vector<int64_t>(static_cast<size_t>(rank), kUnknown)};
}

Shape subshape(const Shape& shape, int64_t start, int64_t end) {
  if (!shape.has_rank) return shape;
  const int64_t rank = shape.rank();
  const int64_t first = bound_in(rank, start, "start"), behind = bound_in(rank, end, "end");
  if (first > behind) {
    throw ShapeError{"Subshape must have computed start <= end, but is " + std::to_string(first) +
                     " and " + std::to_string(behind) + " (of a shape with rank " +
                     std::to_string(rank) + ")"};
  }
  return {true, {shape.dims.begin() + first, shape.dims.begin() + behind}};
}

Shape concatenated(const Shape& first, const Shape& second) {
  if (!first.has_rank || !second.has_rank) return {};
  if (first.dims.size() + second.dims.size() > MTF_MOST_DIMENSIONS) {
    throw ShapeError{"Rank cannot exceed " + std::to_string(MTF_MOST_DIMENSIONS)};
  }
  Shape both = first;
  both.dims.insert(both.dims.end(), second.dims.begin(), second.dims.end());
  return both;
}

int64_t dimension_of(const Shape& shape, int64_t index) {
  const int64_t rank = shape.rank();
  if (!shape.has_rank || index < -rank || index >= rank) return kUnknown;
  return shape.dims[static_cast<size_t>(index < 0 ? rank + index : index)];
}

}  // namespace mtf::kernels
