// Relu, in the memory of its input where nobody else uses it.
#include "kernel/element_types.h"
#include "kernel/registration.h"
#include "kernels.h"
#include "ready.h"

namespace host_kernels {
namespace {

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

void register_relu(const char* device_type) {
  kernel::for_each_type(kernel::Numbers(), [&](auto type) {
    using Element = typename decltype(type)::type;
    kernel::register_kernel<Relu<Element>>({"Relu", device_type},
                                           {{"T", kernel::kNumberOf<Element>}});
  });
}

}  // namespace host_kernels
