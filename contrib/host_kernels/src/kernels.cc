// Kernels on the host: Add and AddV2 with broadcasting, Cast, Relu, MatMul, Sum and Max; and the entry point.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "host_device/stream.h"
#include "kernel/plugin.h"

namespace host_kernels {
namespace {

// The kernels compute on the thread that calls them. Returns when the inputs can be read, that is when
// the stream has done what it holds; without a stream they can be read at once. Throws kernel::Failed
// where the device is not host_device.
void await_inputs(const kernel::Execution& execution) {
  SP_Stream stream = execution.stream();
  if (stream == nullptr) return;
  const auto* shared = reinterpret_cast<const HostDeviceStream*>(stream);
  if (shared->tag != HOST_DEVICE_STREAM_TAG) {
    throw kernel::Failed(TF_FAILED_PRECONDITION,
                         "these kernels know the streams of host_device only, and the devices of type "
                         MTF_HOST_KERNELS_DEVICE_TYPE
                         " are another plugin's; build them for the type of host_device, with "
                         "-DMTF_HOST_KERNELS_DEVICE_TYPE=...");
  }
  kernel::Status status;
  shared->wait(stream, status.get());
  status.check();
}

// -- walking through arrays that differ in shape: what is broadcast or reduced has stride 0 ----------

using Strides = std::vector<int64_t>;  // in elements, one for each dimension that is walked through

// Of an array in C order.
Strides strides_of(const kernel::Shape& shape) {
  Strides strides(shape.size());
  int64_t step = 1;
  for (size_t at = shape.size(); at-- > 0; step *= shape[at]) strides[at] = step;
  return strides;
}

// The size of a dimension, counted from the last one; 1 where there is none.
int64_t size_from_end(const kernel::Shape& shape, size_t at) {
  return at < shape.size() ? shape[shape.size() - 1 - at] : 1;
}

// The shape that two arrays have together, aligned at the last dimension; sizes of 1 adapt. Throws
// kernel::Failed where they do not fit.
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

// Of an array of `shape` that is broadcast to `wide`.
Strides broadcast_strides(const kernel::Shape& shape, const kernel::Shape& wide) {
  Strides own = strides_of(shape);
  for (size_t at = 0; at < shape.size(); ++at) {
    if (shape[at] == 1) own[at] = 0;
  }
  own.insert(own.begin(), wide.size() - shape.size(), 0);
  return own;
}

// Calls `row(offsets, steps, count)` for each row of `shape`: `count` elements that are `steps[i]` apart
// in array i, from `offsets[i]` on.
template <size_t N, class Row>
void for_each_row(const kernel::Shape& shape, const std::array<Strides, N>& strides, Row&& row) {
  if (kernel::n_elements(shape) == 0) return;
  std::array<int64_t, N> offsets{};
  std::array<int64_t, N> steps{};
  if (shape.empty()) return row(offsets, steps, int64_t{1});
  const size_t last = shape.size() - 1;
  for (size_t each = 0; each < N; ++each) steps[each] = strides[each][last];
  kernel::Shape at(shape.size(), 0);
  while (true) {
    row(offsets, steps, shape[last]);
    size_t dimension = last;
    while (dimension-- > 0) {
      for (size_t each = 0; each < N; ++each) offsets[each] += strides[each][dimension];
      if (++at[dimension] < shape[dimension]) break;
      for (size_t each = 0; each < N; ++each) {
        offsets[each] -= strides[each][dimension] * shape[dimension];
      }
      at[dimension] = 0;
    }
    if (dimension == SIZE_MAX) return;  // the first dimension has come to its end
  }
}

// -- Add, Cast and Relu -------------------------------------------------------------------------------

// Signed numbers wrap as unsigned ones do, which C++ does not promise.
template <class Element>
Element sum(Element left, Element right) {
  if constexpr (std::is_integral_v<Element>) {
    using Unsigned = std::make_unsigned_t<Element>;
    return static_cast<Element>(static_cast<Unsigned>(left) + static_cast<Unsigned>(right));
  } else {
    return left + right;
  }
}

template <class Element>
class Add {
 public:
  explicit Add(const kernel::Attributes&) {}

  void compute(const kernel::Execution& execution) const {
    const kernel::Tensor x = execution.input(0);
    const kernel::Tensor y = execution.input(1);
    const kernel::Shape shape = broadcast_shape("Add", x.shape(), y.shape());
    const kernel::Tensor z = execution.output(0, shape);
    await_inputs(execution);
    const auto *left = x.data<Element>(), *right = y.data<Element>();
    auto* target = z.data<Element>();
    for_each_row<3>(
        shape,
        {broadcast_strides(x.shape(), shape), broadcast_strides(y.shape(), shape),
         strides_of(shape)},
        [=](const auto& from, const auto& steps, int64_t count) {
          for (int64_t at = 0; at < count; ++at) {
            target[from[2] + at] =
                sum(left[from[0] + at * steps[0]], right[from[1] + at * steps[1]]);
          }
        });
  }
};

// Of a floating point number: what is out of range becomes the nearest integer, NaN 0.
template <class To, class From>
To saturated(From value) {
  constexpr auto kLow = std::numeric_limits<To>::lowest();
  constexpr auto kHigh = std::numeric_limits<To>::max();
  if (std::isnan(value)) return To{0};
  if (value <= static_cast<From>(kLow)) return kLow;
  if (value >= static_cast<From>(kHigh)) return kHigh;
  return static_cast<To>(value);
}

// Integers wrap.
template <class To, class From>
To converted(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return saturated<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class From, class To>
class Cast {
 public:
  explicit Cast(const kernel::Attributes&) {}

  void compute(const kernel::Execution& execution) const {
    const kernel::Tensor x = execution.input(0);
    const kernel::Shape shape = x.shape();
    const kernel::Tensor y = execution.output(0, shape);
    await_inputs(execution);
    const auto* source = x.data<From>();
    auto* target = y.data<To>();
    const int64_t count = kernel::n_elements(shape);
    for (int64_t at = 0; at < count; ++at) target[at] = converted<To>(source[at]);
  }
};

template <class Element>
class Relu {
 public:
  explicit Relu(const kernel::Attributes&) {}

  void compute(const kernel::Execution& execution) const {
    const kernel::Shape shape = execution.input(0).shape();  // the handle is gone: it would be a user
    const kernel::Tensor activations = execution.output_over(0, 0, shape);
    const kernel::Tensor features = execution.input(0);
    await_inputs(execution);
    const auto* source = features.data<Element>();
    auto* target = activations.data<Element>();
    const int64_t count = kernel::n_elements(shape);
    for (int64_t at = 0; at < count; ++at) {
      target[at] = source[at] < Element{0} ? Element{0} : source[at];  // NaN stays
    }
  }
};

// -- MatMul, by blocks that stay in the caches ---------------------------------------------------------

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

// -- Sum and Max over some dimensions; which, is an input in host memory -------------------------------

// Floating point numbers are summed up in double; integers wrap.
template <class Element>
struct Sum {
  using Total = std::conditional_t<std::is_floating_point_v<Element>, double, uint64_t>;
  static constexpr const char* kOp = "Sum";
  static Total start() { return Total{0}; }
  static Total joined(Total total, Element next) { return total + static_cast<Total>(next); }
};

// Of no elements: the lowest number that there is. NaN wins.
template <class Element>
struct Max {
  using Total = Element;
  static constexpr const char* kOp = "Max";
  static Total start() {
    using Limits = std::numeric_limits<Element>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  static Total joined(Total total, Element next) {
    return next > total || next != next ? next : total;
  }
};

// Throws kernel::Failed for dimensions that the input has not, or that are named twice.
template <class Index>
std::vector<bool> reduced_dimensions(const char* op, const kernel::Tensor& indices, size_t rank) {
  std::vector<bool> is_reduced(rank, false);
  const auto* wanted = indices.data<Index>();
  const auto n_dimensions = static_cast<Index>(rank);
  for (int64_t at = 0; at < kernel::n_elements(indices.shape()); ++at) {
    const Index named = wanted[at];
    if (named < -n_dimensions || named >= n_dimensions) {
      throw kernel::Failed(TF_INVALID_ARGUMENT,
                           std::string(op) + ": reduction_indices: there is no dimension " +
                               std::to_string(named) + " in an input of " + std::to_string(rank));
    }
    const auto dimension = static_cast<size_t>(named < 0 ? named + n_dimensions : named);
    if (is_reduced[dimension]) {
      throw kernel::Failed(TF_INVALID_ARGUMENT, std::string(op) +
                                                    ": reduction_indices: dimension " +
                                                    std::to_string(dimension) + " is named twice");
    }
    is_reduced[dimension] = true;
  }
  return is_reduced;
}

kernel::Shape kept_shape(kernel::Shape shape, const std::vector<bool>& is_reduced) {
  for (size_t at = 0; at < shape.size(); ++at) {
    if (is_reduced[at]) shape[at] = 1;
  }
  return shape;
}

kernel::Shape without_reduced(const kernel::Shape& shape, const std::vector<bool>& is_reduced) {
  kernel::Shape left;
  for (size_t at = 0; at < shape.size(); ++at) {
    if (!is_reduced[at]) left.push_back(shape[at]);
  }
  return left;
}

template <class Reducer, class Element>
void reduce(const Element* source, const kernel::Shape& shape, const kernel::Shape& kept,
            Element* target) {
  const auto count = static_cast<size_t>(kernel::n_elements(kept));
  std::vector<typename Reducer::Total> totals(count, Reducer::start());
  for_each_row<2>(shape, {strides_of(shape), broadcast_strides(kept, shape)},
                  [&](const auto& from, const auto& steps, int64_t n) {
                    for (int64_t at = 0; at < n; ++at) {
                      auto& total = totals[static_cast<size_t>(from[1] + at * steps[1])];
                      total = Reducer::joined(total, source[from[0] + at]);
                    }
                  });
  std::transform(totals.begin(), totals.end(), target,
                 [](auto total) { return static_cast<Element>(total); });
}

template <template <class> class Operation, class Element, class Index>
class Reduction {
 public:
  explicit Reduction(const kernel::Attributes& attributes)
      : keep_dims_(attributes.flag("keep_dims")) {}

  void compute(const kernel::Execution& execution) const {
    using Reducer = Operation<Element>;
    const kernel::Tensor input = execution.input(0);
    const kernel::Shape shape = input.shape();
    const std::vector<bool> is_reduced =
        reduced_dimensions<Index>(Reducer::kOp, execution.input(1), shape.size());
    const kernel::Shape kept = kept_shape(shape, is_reduced);
    const kernel::Tensor output =
        execution.output(0, keep_dims_ ? kept : without_reduced(shape, is_reduced));
    await_inputs(execution);
    reduce<Reducer>(input.data<Element>(), shape, kept, output.data<Element>());
  }

 private:
  const bool keep_dims_;
};

template <template <class> class Operation, class Index>
void register_reduction(const char* device_type) {
  kernel::for_each_type(kernel::Numbers(), [&](auto type) {
    using Element = typename decltype(type)::type;
    kernel::register_kernel<Reduction<Operation, Element, Index>>(
        {Operation<Element>::kOp, device_type},
        {{"T", kernel::kNumberOf<Element>}, {"Tidx", kernel::kNumberOf<Index>}},
        {"reduction_indices"});
  });
}

}  // namespace
}  // namespace host_kernels

extern "C" TF_CAPI_EXPORT void TF_InitKernel(void) {
  using namespace host_kernels;
  constexpr const char* kType = MTF_HOST_KERNELS_DEVICE_TYPE;
  kernel::init_kernels("host_kernels", [] {
    kernel::register_types<Add>({"Add", kType}, kernel::OldNumbers());
    kernel::register_types<Add>({"AddV2", kType}, kernel::Numbers());
    kernel::register_casts<Cast>({"Cast", kType});
    kernel::register_types<MatMul>({"MatMul", kType}, kernel::Types<float, double>());
    register_reduction<Sum, int32_t>(kType);
    register_reduction<Sum, int64_t>(kType);
    register_reduction<Max, int32_t>(kType);
    register_reduction<Max, int64_t>(kType);
    kernel::register_types<Relu>({"Relu", kType}, kernel::Numbers());
  });
}
