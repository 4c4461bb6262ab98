#include "measurements.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>

#include "machine.h"

namespace host {
namespace {

constexpr int kRuns = 3;
constexpr size_t kBlockBytes = size_t{32} << 20;
constexpr size_t kLanes = 64;  // enough independent sums to keep the pipeline full
constexpr int kRounds = 1 << 18;

// Seconds of the fastest of some runs: the others were disturbed.
template <class Work>
double fastest(Work&& work) {
  double best = 1e9;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  }
  return best;
}

int64_t measure_bandwidth() {
  const std::unique_ptr<char[]> from(new (std::nothrow) char[kBlockBytes]);
  const std::unique_ptr<char[]> to(new (std::nothrow) char[kBlockBytes]);
  if (from == nullptr || to == nullptr) return -1;
  std::memset(from.get(), 1, kBlockBytes);  // pages that were never written would share one
  std::memset(to.get(), 1, kBlockBytes);
  const double seconds = fastest([&] { std::memcpy(to.get(), from.get(), kBlockBytes); });
  return static_cast<int64_t>(2.0 * static_cast<double>(kBlockBytes) / seconds);
}

// Kept alive by the volatile store: the compiler may not drop the loop.
void multiply_and_add() {
  std::array<float, kLanes> sums{};
  for (int round = 0; round < kRounds; ++round) {
    for (float& sum : sums) sum = sum * 0.999F + 1.0F;
  }
  volatile float sink = *std::max_element(sums.begin(), sums.end());
  static_cast<void>(sink);
}

double measure_gflops() {
  const double operations = 2.0 * static_cast<double>(kLanes) * kRounds;
  return operations / fastest(multiply_and_add) * 1e-9 * usable_cpus();
}

}  // namespace

int64_t memory_bandwidth() {
  static const int64_t bandwidth = measure_bandwidth();
  return bandwidth;
}

double gflops() {
  static const double speed = measure_gflops();
  return speed;
}

}  // namespace host
