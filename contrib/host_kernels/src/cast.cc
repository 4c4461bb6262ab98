// Cast among the numbers and bool.
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernel/element_types.h"
#include "kernel/registration.h"
#include "kernels.h"
#include "ready.h"

namespace host_kernels {
namespace {

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

}  // namespace

void register_cast(const char* device_type) {
  kernel::for_each_type(kernel::NumbersAndBool(), [&](auto type) {
    register_from<typename decltype(type)::type>(device_type);
  });
}

}  // namespace host_kernels
