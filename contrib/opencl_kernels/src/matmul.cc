// MatMul, by tiles that a group of work items shares.
#include <string>

#include "command.h"
#include "element_names.h"
#include "kernel/matrix_product.h"
#include "kernel/registration.h"
#include "kernels.h"

namespace opencl_kernels {
namespace {

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
        options_(std::string("-DT=") + name_of(kernel::kNumberOf<Element>) + " -DTILE=" +
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

void register_matmul(const char* device_type) {
  kernel::for_each_type(kernel::Types<float, double>(), [&](auto type) {
    using Element = typename decltype(type)::type;
    kernel::register_kernel<MatMul<Element>>({"MatMul", device_type},
                                             {{"T", kernel::kNumberOf<Element>}});
  });
}

}  // namespace opencl_kernels
