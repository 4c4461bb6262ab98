// Kernels for OpenCL's devices: Add and AddV2 of equal shapes, Cast, Relu, MatMul; and the entry point.
#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>

#include "kernel/plugin.h"
#include "opencl.h"
#include "opencl_device/stream.h"

namespace opencl_kernels {
namespace {

// -- functions in OpenCL C, compiled when they are first used, and their launch on the stream ---------

using Function = opencl::Handle<cl_kernel, clRetainKernel, clReleaseKernel>;
using Program = opencl::Handle<cl_program, clRetainProgram, clReleaseProgram>;
using Key = std::tuple<cl_context, cl_device_id, const char*, std::string>;

constexpr size_t kLongestLog = 2000;

// Throws kernel::Failed, with the name of the OpenCL function, unless `error` is CL_SUCCESS.
void check(cl_int error, const char* function) {
  if (error == CL_SUCCESS) return;
  throw kernel::Failed(opencl::status_code(error),
                       std::string(function) + ": " + opencl::error_text(error));
}

std::string log_of(cl_program program, cl_device_id device) {
  size_t size = 0;
  if (clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size)) return "";
  std::string log(size, '\0');
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  return log.substr(0, std::min(log.find('\0'), kLongestLog));
}

Program compiled(const OpenCLDeviceStream& stream, const char* source, const std::string& options) {
  cl_int error = CL_SUCCESS;
  Program program(clCreateProgramWithSource(stream.context, 1, &source, nullptr, &error));
  check(error, "clCreateProgramWithSource");
  error = clBuildProgram(program.get(), 1, &stream.device, options.c_str(), nullptr, nullptr);
  if (error == CL_SUCCESS) return program;
  throw kernel::Failed(TF_INTERNAL, "clBuildProgram " + options + ": " + opencl::error_text(error) +
                                        '\n' + log_of(program.get(), stream.device));
}

// Never destroyed: drivers may be gone before static objects are. A program keeps its context, so
// that no other one gets its address.
struct Programs {
  std::mutex mutex;
  std::map<Key, Program> by_source;
};

Programs& programs() {
  static auto* const all = new Programs;
  return *all;
}

Program program_of(const OpenCLDeviceStream& stream, const char* source,
                   const std::string& options) {
  Programs& all = programs();
  const std::lock_guard lock(all.mutex);
  Program& program = all.by_source[Key(stream.context, stream.device, source, options)];
  if (!program) program = compiled(stream, source, options);
  return program;
}

// The function `run` of a source, for the device of a stream. `source` lives as long as the process.
// Programs are compiled once and kept; a function is the caller's alone, since its arguments are state.
// Throws kernel::Failed, with the compiler's messages. [any thread]
Function function_of(const OpenCLDeviceStream& stream, const char* source,
                     const std::string& options) {
  const Program program = program_of(stream, source, options);
  cl_int error = CL_SUCCESS;
  Function function(clCreateKernel(program.get(), "run", &error));
  check(error, "clCreateKernel");
  return function;
}

// The stream that the work goes to. Throws kernel::Failed where the device is not opencl_device.
const OpenCLDeviceStream& stream_of(const kernel::Execution& execution) {
  const auto* shared = reinterpret_cast<const OpenCLDeviceStream*>(execution.stream());
  if (shared != nullptr && shared->tag == OPENCL_DEVICE_STREAM_TAG) return *shared;
  throw kernel::Failed(TF_FAILED_PRECONDITION,
                       "these kernels know the streams of opencl_device only, and the devices of "
                       "type " MTF_OPENCL_KERNELS_DEVICE_TYPE
                       " are another plugin's; build them for the type of opencl_device, with "
                       "-DMTF_OPENCL_KERNELS_DEVICE_TYPE=...");
}

// Work items in two dimensions, and how many of them a group has in each; 0 lets the driver choose.
struct Range {
  std::array<size_t, 2> items{1, 1};
  size_t group = 0;
};

// Arguments are set in the order of the function's, then it is launched. All throw kernel::Failed.
class Command {
 public:
  Command(const OpenCLDeviceStream& stream, const char* source, const std::string& options)
      : stream_(stream), function_(function_of(stream, source, options)) {}

  Command& memory(const kernel::Tensor& tensor) {
    const bool is_empty = kernel::n_elements(tensor.shape()) == 0;  // its address may be anybody's
    check(clSetKernelArgSVMPointer(function_.get(), next_++,
                                   is_empty ? nullptr : tensor.data<void>()),
          "clSetKernelArgSVMPointer");
    return *this;
  }

  Command& number(cl_long value) {
    check(clSetKernelArg(function_.get(), next_++, sizeof(value), &value), "clSetKernelArg");
    return *this;
  }

  // Returns before the work is done; the driver keeps what it needs of this.
  void launch(const Range& range) {
    const size_t groups[] = {range.group, range.group};
    cl_event event = nullptr;
    check(clEnqueueNDRangeKernel(stream_.queue, function_.get(), 2, nullptr, range.items.data(),
                                 range.group == 0 ? nullptr : groups, 0, nullptr, &event),
          "clEnqueueNDRangeKernel");
    const opencl::Handle<cl_event, clRetainEvent, clReleaseEvent> launched(event);
    kernel::Status status;
    stream_.add(const_cast<SP_Stream>(reinterpret_cast<const SP_Stream_st*>(&stream_)), event,
                status.get());
    status.check();
  }

 private:
  const OpenCLDeviceStream& stream_;
  const Function function_;
  cl_uint next_ = 0;
};

// What OpenCL C calls the element types.
template <class Element>
std::string name() {
  switch (kernel::kNumberOf<Element>) {
    case TF_FLOAT: return "float";
    case TF_DOUBLE: return "double";
    case TF_INT8: return "char";
    case TF_INT16: return "short";
    case TF_INT32: return "int";
    case TF_INT64: return "long";
    case TF_UINT16: return "ushort";
    case TF_UINT32: return "uint";
    case TF_UINT64: return "ulong";
    default: return "uchar";  // TF_BOOL too: bool itself has no fixed size there
  }
}

// -- Add, Cast and Relu -------------------------------------------------------------------------------

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

// -- MatMul, by tiles that a group of work items shares ------------------------------------------------

constexpr size_t kTile = 8;  // 64 work items in a group: every device has as many

constexpr const char* kMatMul = R"CLC(
#if TRANSPOSE_A
#define A(i, k) a[(k) * rows + (i)]
#else
#define A(i, k) a[(i) * depth + (k)]
#endif
#if TRANSPOSE_B
#define B(k, j) b[(j) * depth + (k)]
#else
#define B(k, j) b[(k) * columns + (j)]
#endif

kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void run(global const T* a, global const T* b, global T* product, long rows, long depth,
         long columns) {
  local T left[TILE][TILE], right[TILE][TILE];
  const int x = get_local_id(0), y = get_local_id(1);
  const long row = get_global_id(1), column = get_global_id(0);
  T total = 0;
  for (long start = 0; start < depth; start += TILE) {
    left[y][x] = row < rows && start + x < depth ? A(row, start + x) : 0;
    right[y][x] = start + y < depth && column < columns ? B(start + y, column) : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < TILE; ++k) total += left[y][k] * right[k][x];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (row < rows && column < columns) product[row * columns + column] = total;
})CLC";

size_t whole_tiles(int64_t size) {
  return (static_cast<size_t>(size) + kTile - 1) / kTile * kTile;
}

template <class Element>
class MatMul {
 public:
  explicit MatMul(const kernel::Attributes& attributes)
      : product_(attributes),
        options_("-DT=" + name<Element>() + " -DTILE=" +
                 std::to_string(kTile) + " -DTRANSPOSE_A=" + std::to_string(product_.transpose_a) +
                 " -DTRANSPOSE_B=" + std::to_string(product_.transpose_b)) {}

  void compute(const kernel::Execution& execution) const {
    const kernel::Tensor a = execution.input(0);
    const kernel::Tensor b = execution.input(1);
    const kernel::ProductSizes sizes = product_.sizes(a.shape(), b.shape());
    const kernel::Tensor product = execution.output(0, {sizes.rows, sizes.columns});
    if (sizes.rows == 0 || sizes.columns == 0) return;
    Command command(stream_of(execution), kMatMul, options_);
    command.memory(a).memory(b).memory(product);
    command.number(sizes.rows).number(sizes.depth).number(sizes.columns);
    command.launch({{whole_tiles(sizes.columns), whole_tiles(sizes.rows)}, kTile});
  }

 private:
  const kernel::MatrixProduct product_;
  const std::string options_;
};

}  // namespace
}  // namespace opencl_kernels

extern "C" TF_CAPI_EXPORT void TF_InitKernel(void) {
  using namespace opencl_kernels;
  constexpr const char* kType = MTF_OPENCL_KERNELS_DEVICE_TYPE;
  kernel::init_kernels("opencl_kernels", [] {
    kernel::register_types<Add>({"Add", kType}, kernel::OldNumbers());
    kernel::register_types<Add>({"AddV2", kType}, kernel::Numbers());
    kernel::register_types<Relu>({"Relu", kType}, kernel::Numbers());
    kernel::register_casts<Cast>({"Cast", kType});
    kernel::register_types<MatMul>({"MatMul", kType}, kernel::Types<float, double>());
  });
}
