// Add and AddV2 of equal shapes, Cast, and Relu in the memory of its input where nobody else uses it.
#include <string>
#include <type_traits>

#include "command.h"
#include "element_names.h"
#include "kernel/registration.h"
#include "kernels.h"

namespace opencl_kernels {
namespace {

constexpr const char* kAdd = R"CLC(
kernel void run(global const T* x, global const T* y, global T* z) {
  const size_t at = get_global_id(0);
  z[at] = x[at] + y[at];
})CLC";

constexpr const char* kRelu = R"CLC(
kernel void run(global const T* features, global T* activations) {
  const size_t at = get_global_id(0);
  activations[at] = features[at] < (T)0 ? (T)0 : features[at];
})CLC";

constexpr const char* kCast = R"CLC(
#ifdef TO_BOOL
#define CONVERT(value) ((value) != 0)
#endif
kernel void run(global const FROM* x, global TO* y) {
  const size_t at = get_global_id(0);
  y[at] = CONVERT(x[at]);
})CLC";

template <class Element>
std::string name() {
  return name_of(kernel::kNumberOf<Element>);
}

// A function for each element; the driver refuses to launch none.
void launch_for_each(Command& command, const kernel::Shape& shape) {
  command.launch({{static_cast<size_t>(kernel::n_elements(shape)), 1}});
}

template <class Element>
class Add {
 public:
  explicit Add(const kernel::Attributes&) {}

  void compute(const kernel::Execution& execution) const {
    const kernel::Tensor x = execution.input(0);
    const kernel::Tensor y = execution.input(1);
    const kernel::Shape shape = x.shape();
    if (y.shape() != shape) {
      throw kernel::Failed(TF_UNIMPLEMENTED, "Add: opencl_kernels adds equal shapes only; x is " +
                                                 kernel::text_of(shape) + ", y is " +
                                                 kernel::text_of(y.shape()));
    }
    const kernel::Tensor z = execution.output(0, shape);
    if (kernel::n_elements(shape) == 0) return;
    Command command(stream_of(execution), kAdd, "-DT=" + name<Element>());
    launch_for_each(command.memory(x).memory(y).memory(z), shape);
  }
};

template <class Element>
class Relu {
 public:
  explicit Relu(const kernel::Attributes&) {}

  void compute(const kernel::Execution& execution) const {
    const kernel::Shape shape = execution.input(0).shape();  // the handle is gone: it would be a user
    const kernel::Tensor activations = execution.output_over(0, 0, shape);
    if (kernel::n_elements(shape) == 0) return;
    Command command(stream_of(execution), kRelu, "-DT=" + name<Element>());
    launch_for_each(command.memory(execution.input(0)).memory(activations), shape);
  }
};

// Floating point numbers that are out of range become the nearest integer; integers wrap.
template <class From, class To>
std::string conversion() {
  if (std::is_same_v<To, bool>) return "-DTO_BOOL";
  const bool saturates = std::is_floating_point_v<From> && std::is_integral_v<To>;
  return "-DCONVERT=convert_" + name<To>() + (saturates ? "_sat" : "");
}

template <class From, class To>
class Cast {
 public:
  explicit Cast(const kernel::Attributes&) {}

  void compute(const kernel::Execution& execution) const {
    const kernel::Tensor x = execution.input(0);
    const kernel::Shape shape = x.shape();
    const kernel::Tensor y = execution.output(0, shape);
    if (kernel::n_elements(shape) == 0) return;
    Command command(stream_of(execution), kCast,
                    "-DFROM=" + name<From>() + " -DTO=" + name<To>() + ' ' + conversion<From, To>());
    launch_for_each(command.memory(x).memory(y), shape);
  }
};

template <template <class> class Kernel, class List>
void register_types(const kernel::Place& place, List types) {
  kernel::for_each_type(types, [&](auto type) {
    using Element = typename decltype(type)::type;
    kernel::register_kernel<Kernel<Element>>(place, {{"T", kernel::kNumberOf<Element>}});
  });
}

template <class From>
void register_cast_from(const char* device_type) {
  kernel::for_each_type(kernel::NumbersAndBool(), [&](auto type) {
    using To = typename decltype(type)::type;
    kernel::register_kernel<Cast<From, To>>(
        {"Cast", device_type},
        {{"SrcT", kernel::kNumberOf<From>}, {"DstT", kernel::kNumberOf<To>}});
  });
}

}  // namespace

void register_elementwise(const char* device_type) {
  register_types<Add>({"Add", device_type}, kernel::OldNumbers());
  register_types<Add>({"AddV2", device_type}, kernel::Numbers());
  register_types<Relu>({"Relu", device_type}, kernel::Numbers());
  kernel::for_each_type(kernel::NumbersAndBool(), [&](auto type) {
    register_cast_from<typename decltype(type)::type>(device_type);
  });
}

}  // namespace opencl_kernels
