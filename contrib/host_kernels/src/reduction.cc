// Sum and Max over some dimensions; which, is an input in host memory.
#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "kernel/element_types.h"
#include "kernel/registration.h"
#include "kernels.h"

namespace host_kernels {
namespace {

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

void register_reductions(const char* device_type) {
  register_reduction<Sum, int32_t>(device_type);
  register_reduction<Sum, int64_t>(device_type);
  register_reduction<Max, int32_t>(device_type);
  register_reduction<Max, int64_t>(device_type);
}

}  // namespace host_kernels
