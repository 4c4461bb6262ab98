// MatMul, by blocks that stay in the caches.
#include <algorithm>
#include <vector>

#include "kernel/element_types.h"
#include "kernel/matrix_product.h"
#include "kernel/registration.h"
#include "kernels.h"

namespace host_kernels {
namespace {

constexpr int64_t kDepth = 64;   // rows of the right block: 64 * 512 floats are 128 KiB
constexpr int64_t kWidth = 512;  // its columns, and those of the result that are added to
constexpr int64_t kTile = 32;    // of a transposition

// The matrix of so many rows and columns that is stored transposed.
template <class Element>
std::vector<Element> transposed(const Element* matrix, int64_t rows, int64_t columns) {
  std::vector<Element> copy(static_cast<size_t>(rows * columns));
  for (int64_t row = 0; row < rows; row += kTile) {
    for (int64_t column = 0; column < columns; column += kTile) {
      for (int64_t i = row; i < std::min(row + kTile, rows); ++i) {
        for (int64_t j = column; j < std::min(column + kTile, columns); ++j) {
          copy[static_cast<size_t>(i * columns + j)] = matrix[j * rows + i];
        }
      }
    }
  }
  return copy;
}

// A matrix in C order, copied where it is stored transposed.
template <class Element>
class InOrder {
 public:
  InOrder(const kernel::Tensor& stored, bool is_transposed, int64_t rows, int64_t columns)
      : copy_(is_transposed ? transposed(stored.data<const Element>(), rows, columns)
                            : std::vector<Element>()),
        data_(is_transposed ? copy_.data() : stored.data<const Element>()) {}
  InOrder(const InOrder&) = delete;

  const Element* data() const { return data_; }

 private:
  const std::vector<Element> copy_;
  const Element* const data_;
};

struct Section {
  int64_t start;
  int64_t end;
};

// Adds the product of the columns `depth` of `a` and a block of `b` to the columns `width` of `c`.
template <class Element>
void add_block(const Element* a, const Element* b, Element* c, const kernel::ProductSizes& sizes,
               Section depth, Section width) {
  for (int64_t row = 0; row < sizes.rows; ++row) {
    Element* target = c + row * sizes.columns;
    for (int64_t k = depth.start; k < depth.end; ++k) {
      const Element factor = a[row * sizes.depth + k];
      const Element* source = b + k * sizes.columns;
      for (int64_t j = width.start; j < width.end; ++j) target[j] += factor * source[j];
    }
  }
}

template <class Element>
void multiply(const Element* a, const Element* b, Element* c, const kernel::ProductSizes& sizes) {
  std::fill_n(c, sizes.rows * sizes.columns, Element{0});
  for (int64_t j = 0; j < sizes.columns; j += kWidth) {
    for (int64_t k = 0; k < sizes.depth; k += kDepth) {
      add_block(a, b, c, sizes, {k, std::min(k + kDepth, sizes.depth)},
                {j, std::min(j + kWidth, sizes.columns)});
    }
  }
}

template <class Element>
class MatMul {
 public:
  explicit MatMul(const kernel::Attributes& attributes) : product_(attributes) {}

  void compute(const kernel::Execution& execution) const {
    const kernel::Tensor a = execution.input(0);
    const kernel::Tensor b = execution.input(1);
    const kernel::ProductSizes sizes = product_.sizes(a.shape(), b.shape());
    const kernel::Tensor product = execution.output(0, {sizes.rows, sizes.columns});
    await_inputs(execution);
    const InOrder<Element> left(a, product_.transpose_a, sizes.rows, sizes.depth);
    const InOrder<Element> right(b, product_.transpose_b, sizes.depth, sizes.columns);
    multiply(left.data(), right.data(), product.data<Element>(), sizes);
  }

 private:
  const kernel::MatrixProduct product_;
};

}  // namespace

void register_matmul(const char* device_type) {
  kernel::for_each_type(kernel::Types<float, double>(), [&](auto type) {
    using Element = typename decltype(type)::type;
    kernel::register_kernel<MatMul<Element>>({"MatMul", device_type},
                                             {{"T", kernel::kNumberOf<Element>}});
  });
}

}  // namespace host_kernels
