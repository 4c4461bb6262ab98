// Add and AddV2, with broadcasting; Cast among the numbers and bool; Relu, in the memory of its input where
// nobody else uses it.
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernel/element_types.h"
#include "kernel/registration.h"
#include "kernels.h"

namespace host_kernels {
namespace {

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

template <class List>
void register_types(const char* op, const char* device_type, List types) {
  kernel::for_each_type(types, [&](auto type) {
    using Element = typename decltype(type)::type;
    kernel::register_kernel<Add<Element>>({op, device_type}, {{"T", kernel::kNumberOf<Element>}});
  });
}

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

template <class From>
void register_from(const char* device_type) {
  kernel::for_each_type(kernel::NumbersAndBool(), [&](auto type) {
    using To = typename decltype(type)::type;
    kernel::register_kernel<Cast<From, To>>(
        {"Cast", device_type},
        {{"SrcT", kernel::kNumberOf<From>}, {"DstT", kernel::kNumberOf<To>}});
  });
}

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

}  // namespace

void register_add(const char* device_type) {
  register_types("Add", device_type, kernel::OldNumbers());
  register_types("AddV2", device_type, kernel::Numbers());
}

void register_cast(const char* device_type) {
  kernel::for_each_type(kernel::NumbersAndBool(), [&](auto type) {
    register_from<typename decltype(type)::type>(device_type);
  });
}

void register_relu(const char* device_type) {
  kernel::for_each_type(kernel::Numbers(), [&](auto type) {
    using Element = typename decltype(type)::type;
    kernel::register_kernel<Relu<Element>>({"Relu", device_type},
                                           {{"T", kernel::kNumberOf<Element>}});
  });
}

}  // namespace host_kernels
