// The sizes of a product of two matrices, each of which may be stored transposed.
#pragma once

#include <cstdint>
#include <string>

#include "kernel/attributes.h"
#include "kernel/shape.h"

namespace kernel {

struct ProductSizes {
  int64_t rows;
  int64_t depth;  // columns of the left matrix, rows of the right one
  int64_t columns;
};

// What a node of MatMul says.
class MatrixProduct {
 public:
  explicit MatrixProduct(const Attributes& attributes)
      : transpose_a(attributes.flag("transpose_a")), transpose_b(attributes.flag("transpose_b")) {}

  // Throws Failed for shapes that cannot be multiplied.
  ProductSizes sizes(const Shape& a, const Shape& b) const {
    check_rank("a", a);
    check_rank("b", b);
    const int64_t depth = a[transpose_a ? 0 : 1];
    if (depth != b[transpose_b ? 1 : 0]) {
      throw Failed(TF_INVALID_ARGUMENT,
                   "MatMul: the columns of a and the rows of b must be as many; a is " +
                       described(a, transpose_a) + ", b is " + described(b, transpose_b));
    }
    return {a[transpose_a ? 1 : 0], depth, b[transpose_b ? 0 : 1]};
  }

  const bool transpose_a;
  const bool transpose_b;

 private:
  static void check_rank(const char* name, const Shape& shape) {
    if (shape.size() == 2) return;
    throw Failed(TF_INVALID_ARGUMENT, std::string("MatMul: ") + name +
                                          " must be a matrix, its shape is " + text_of(shape));
  }

  static std::string described(const Shape& shape, bool is_transposed) {
    return text_of(shape) + (is_transposed ? " transposed" : "");
  }
};

}  // namespace kernel
