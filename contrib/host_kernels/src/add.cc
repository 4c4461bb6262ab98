// Add and AddV2, with broadcasting.
#include <type_traits>

#include "kernel/element_types.h"
#include "kernel/registration.h"
#include "kernels.h"
#include "ready.h"
#include "strides.h"

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

}  // namespace

void register_add(const char* device_type) {
  register_types("Add", device_type, kernel::OldNumbers());
  register_types("AddV2", device_type, kernel::Numbers());
}

}  // namespace host_kernels
