// Kernels as classes: the C interface of modular_tf/kernels.h as C++, with failures as exceptions.
//
//   class Twice {
//    public:
//     explicit Twice(const kernel::Attributes&) {}                   // may throw
//     void compute(const kernel::Execution& execution) const { … }   // may throw; several threads at once
//   };
//   kernel::register_kernel<Twice>({"Twice", "CPU"}, {{"T", kernel::kNumberOf<float>}});
#pragma once

#include <cstdint>
#include <cstdio>
#include <exception>
#include <initializer_list>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "modular_tf/kernels.h"
#include "modular_tf/status.h"
#include "modular_tf/tensor.h"

namespace kernel {

// -- statuses of the host's functions as exceptions, and exceptions as statuses ----------------------

// A failure with the status code that the host shall see.
class Failed : public std::runtime_error {
 public:
  Failed(TF_Code status, const std::string& message) : std::runtime_error(message), code(status) {}
  const TF_Code code;
};

// A status that is passed to functions of the host. One thread at a time.
class Status {
 public:
  Status() : raw_(TF_NewStatus()) {
    if (raw_ == nullptr) throw std::bad_alloc();
  }
  Status(const Status&) = delete;
  Status& operator=(const Status&) = delete;
  ~Status() { TF_DeleteStatus(raw_); }

  TF_Status* get() const { return raw_; }

  // Throws Failed unless the last function has succeeded.
  void check() const {
    if (TF_GetCode(raw_) != TF_OK) throw Failed(TF_GetCode(raw_), TF_Message(raw_));
  }

 private:
  TF_Status* const raw_;
};

// Runs `body` so that no exception reaches the host, which is C. `fail(code, message)` is called with
// what it throws.
template <class Body, class Fail>
void guarded(Body&& body, Fail&& fail) noexcept {
  try {
    body();
  } catch (const Failed& failed) {
    fail(failed.code, failed.what());
  } catch (const std::bad_alloc&) {
    fail(TF_RESOURCE_EXHAUSTED, "out of host memory");
  } catch (const std::exception& error) {
    fail(TF_INTERNAL, error.what());
  } catch (...) {
    fail(TF_INTERNAL, "an exception that is no std::exception");
  }
}

// -- shapes: sizes of the dimensions, the last one being contiguous in memory ------------------------

using Shape = std::vector<int64_t>;

inline int64_t n_elements(const Shape& shape) {
  int64_t total = 1;
  for (const int64_t size : shape) total *= size;
  return total;
}

// "[2,3]", for messages.
inline std::string text_of(const Shape& shape) {
  std::string text = "[";
  for (const int64_t size : shape) {
    if (text.size() > 1) text += ',';
    text += std::to_string(size);
  }
  return text + ']';
}

// -- what the host lends: tensors, the attributes of a node, one execution ---------------------------

// Owns one handle. The elements may be in device memory: the kernel knows. One thread at a time.
class Tensor {
 public:
  explicit Tensor(TF_Tensor* raw) : raw_(raw) {}
  Tensor(Tensor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor() { TF_DeleteTensor(raw_); }

  Shape shape() const {
    Shape sizes(static_cast<size_t>(TF_NumDims(raw_)));
    for (size_t at = 0; at < sizes.size(); ++at) sizes[at] = TF_Dim(raw_, static_cast<int>(at));
    return sizes;
  }

  template <class Element>
  Element* data() const {
    return static_cast<Element*>(TF_TensorData(raw_));
  }

 private:
  TF_Tensor* raw_;
};

// Valid within the constructor of a kernel. Throws Failed where the node has no such attribute.
class Attributes {
 public:
  explicit Attributes(TF_OpKernelConstruction* raw) : raw_(raw) {}

  bool flag(const char* name) const {
    unsigned char value = 0;
    Status status;
    TF_OpKernelConstruction_GetAttrBool(raw_, name, &value, status.get());
    status.check();
    return value != 0;
  }

 private:
  TF_OpKernelConstruction* const raw_;
};

// Valid within `compute`. All functions throw Failed.
class Execution {
 public:
  explicit Execution(TF_OpKernelContext* raw) : raw_(raw) {}

  Tensor input(int index) const {
    TF_Tensor* tensor = nullptr;
    Status status;
    TF_GetInput(raw_, index, &tensor, status.get());
    return owned(tensor, status);
  }

  // New memory for an output, not cleared; it has the type that the operation says.
  Tensor output(int index, const Shape& shape) const {
    Status status;
    const TF_DataType type = TF_ExpectedOutputDataType(raw_, index);
    const size_t bytes = static_cast<size_t>(n_elements(shape)) * TF_DataTypeSize(type);
    TF_Tensor* tensor = TF_AllocateOutput(raw_, index, type, shape.data(),
                                          static_cast<int>(shape.size()), bytes, status.get());
    return owned(tensor, status);
  }

  // The same; in the memory of the input where nobody else uses it. Hold no handle on the input: it
  // would be a user.
  Tensor output_over(int input, int index, const Shape& shape) const {
    Status status;
    TF_Tensor* tensor = TF_ForwardInputOrAllocateOutput(raw_, &input, 1, index, shape.data(),
                                                        static_cast<int>(shape.size()), nullptr,
                                                        status.get());
    return owned(tensor, status);
  }

  // NULL on a device without streams, such as TensorFlow's own CPU.
  SP_Stream stream() const {
    Status status;
    SP_Stream stream = TF_GetStream(raw_, status.get());
    return TF_GetCode(status.get()) == TF_OK ? stream : nullptr;
  }

 private:
  static Tensor owned(TF_Tensor* raw, const Status& status) {
    Tensor tensor(raw);
    status.check();
    if (raw == nullptr) throw Failed(TF_INTERNAL, "the host gave no tensor");
    return tensor;
  }

  TF_OpKernelContext* const raw_;
};

// -- the numbers of element types, and lists of types ------------------------------------------------

template <class Element>
constexpr TF_DataType kNumberOf = TF_DataType{};  // 0 is no type
template <>
inline constexpr TF_DataType kNumberOf<bool> = TF_BOOL;
template <>
inline constexpr TF_DataType kNumberOf<float> = TF_FLOAT;
template <>
inline constexpr TF_DataType kNumberOf<double> = TF_DOUBLE;
template <>
inline constexpr TF_DataType kNumberOf<int8_t> = TF_INT8;
template <>
inline constexpr TF_DataType kNumberOf<int16_t> = TF_INT16;
template <>
inline constexpr TF_DataType kNumberOf<int32_t> = TF_INT32;
template <>
inline constexpr TF_DataType kNumberOf<int64_t> = TF_INT64;
template <>
inline constexpr TF_DataType kNumberOf<uint8_t> = TF_UINT8;
template <>
inline constexpr TF_DataType kNumberOf<uint16_t> = TF_UINT16;
template <>
inline constexpr TF_DataType kNumberOf<uint32_t> = TF_UINT32;
template <>
inline constexpr TF_DataType kNumberOf<uint64_t> = TF_UINT64;

template <class Element>
struct Type {
  using type = Element;
};

template <class... Elements>
struct Types {};

// Calls `function(Type<Element>())` for each.
template <class... Elements, class Function>
void for_each_type(Types<Elements...>, Function&& function) {
  (function(Type<Elements>()), ...);
}

template <class... Left, class... Right>
Types<Left..., Right...> joined(Types<Left...>, Types<Right...>);

// What the operation Add takes; AddV2, Relu, Sum and Max take all numbers.
using OldNumbers = Types<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t>;
using Numbers = decltype(joined(OldNumbers(), Types<uint16_t, uint32_t, uint64_t>()));
using NumbersAndBool = decltype(joined(Numbers(), Types<bool>()));

// -- registering classes as kernels ------------------------------------------------------------------

struct Constraint {
  const char* attribute;
  TF_DataType type;
};

struct Place {
  const char* op;
  const char* device_type;
};

// The three functions of a kernel.
template <class Kernel>
struct Functions {
  static void* create(TF_OpKernelConstruction* construction) {
    Kernel* made = nullptr;
    report(construction, [&] { made = new Kernel(Attributes(construction)); });
    return made;
  }
  static void compute(void* kernel, TF_OpKernelContext* context) {
    report(context, [&] { static_cast<const Kernel*>(kernel)->compute(Execution(context)); });
  }
  static void destroy(void* kernel) { delete static_cast<Kernel*>(kernel); }

 private:
  // Called by name: their addresses would have to be there when the library is mapped.
  static void fail(TF_OpKernelConstruction* construction, TF_Status* status) {
    TF_OpKernelConstruction_Failure(construction, status);
  }
  static void fail(TF_OpKernelContext* context, TF_Status* status) {
    TF_OpKernelContext_Failure(context, status);
  }
  template <class Subject, class Body>
  static void report(Subject* subject, Body&& body) {
    guarded(body, [&](TF_Code code, const char* message) {
      TF_Status* status = TF_NewStatus();
      TF_SetStatus(status, code, message);
      fail(subject, status);
      TF_DeleteStatus(status);
    });
  }
};

// `host_args` are inputs and outputs that the kernel wants in host memory. Throws Failed.
template <class Kernel>
void register_kernel(const Place& place, std::initializer_list<Constraint> constraints,
                     std::initializer_list<const char*> host_args = {}) {
  using Calls = Functions<Kernel>;
  Status status;
  TF_KernelBuilder* builder = TF_NewKernelBuilder(place.op, place.device_type, Calls::create,
                                                  Calls::compute, Calls::destroy);
  for (const Constraint& constraint : constraints) {
    TF_KernelBuilder_TypeConstraint(builder, constraint.attribute, constraint.type, status.get());
    if (TF_GetCode(status.get()) != TF_OK) TF_DeleteKernelBuilder(builder);
    status.check();
  }
  for (const char* name : host_args) TF_KernelBuilder_HostMemory(builder, name);
  TF_RegisterKernelBuilder(place.op, builder, status.get());
  status.check();
}

// Registers Kernel<Element> for each type, which the attribute T has.
template <template <class> class Kernel, class List>
void register_types(const Place& place, List types) {
  for_each_type(types, [&](auto type) {
    using Element = typename decltype(type)::type;
    register_kernel<Kernel<Element>>(place, {{"T", kNumberOf<Element>}});
  });
}

// Registers Kernel<From, To> for the numbers and bool, as the operation Cast has them.
template <template <class, class> class Kernel>
void register_casts(const Place& place) {
  for_each_type(NumbersAndBool(), [&](auto source) {
    using From = typename decltype(source)::type;
    for_each_type(NumbersAndBool(), [&](auto target) {
      using To = typename decltype(target)::type;
      register_kernel<Kernel<From, To>>(place,
                                        {{"SrcT", kNumberOf<From>}, {"DstT", kNumberOf<To>}});
    });
  });
}

// The body of TF_InitKernel. There is no status to set: what was registered until a failure stays.
template <class Register>
void init_kernels(const char* library, Register&& register_all) noexcept {
  guarded(register_all, [&](TF_Code code, const char* message) {
    std::fprintf(stderr, "%s: registration failed with code %d: %s\n", library, code, message);
  });
}

// -- a product of two matrices, each of which may be stored transposed -------------------------------

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
