#include "machine.h"

#include <sched.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>

namespace host {
namespace {

constexpr const char* kBlanks = " \t";

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// The value behind "key :" in a file of such lines, or "".
std::string value_of(const char* file, const std::string& key) {
  std::ifstream lines(file);
  std::string line;
  while (std::getline(lines, line)) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos && trimmed(line.substr(0, colon)) == key) {
      return trimmed(line.substr(colon + 1));
    }
  }
  return "";
}

// The number that `text` starts with; false when it starts with none.
template <class Number>
bool leading_number(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  return std::from_chars(text.data(), end, number).ec == std::errc();
}

bool meminfo_bytes(const char* key, int64_t& bytes) {
  if (!leading_number(value_of("/proc/meminfo", key), bytes)) return false;
  bytes *= 1024;  // the file counts in kB
  return true;
}

// CPUs that this process may run on; at least 1.
int usable_cpus() {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0) return 1;
  return CPU_COUNT(&cpus);
}

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

std::string hardware_name() {
  const std::string model = value_of("/proc/cpuinfo", "model name");
  if (!model.empty()) return model;
  utsname names{};
  return uname(&names) == 0 ? names.machine : "";
}

std::string vendor_name() { return value_of("/proc/cpuinfo", "vendor_id"); }

int32_t numa_node() {
  std::ifstream file("/sys/devices/system/node/online");
  std::string online;  // "0", or a list such as "0-1"
  std::getline(file, online);
  int32_t node = -1;
  const bool is_one_number = online.find_first_not_of("0123456789") == std::string::npos;
  return is_one_number && leading_number(online, node) ? node : -1;
}

bool memory_usage(int64_t& free, int64_t& total) {
  if (meminfo_bytes("MemAvailable", free) && meminfo_bytes("MemTotal", total)) return true;
  struct sysinfo facts {};
  if (sysinfo(&facts) != 0) return false;
  free = static_cast<int64_t>(facts.freeram) * facts.mem_unit;
  total = static_cast<int64_t>(facts.totalram) * facts.mem_unit;
  return true;
}

int64_t memory_bandwidth() {
  static const int64_t bandwidth = measure_bandwidth();
  return bandwidth;
}

double gflops() {
  static const double speed = measure_gflops();
  return speed;
}

}  // namespace host
