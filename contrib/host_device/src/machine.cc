#include "machine.h"

#include <sched.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <charconv>
#include <fstream>

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

bool memory_usage(MemoryUsage& usage) {
  if (meminfo_bytes("MemAvailable", usage.free_bytes) &&
      meminfo_bytes("MemTotal", usage.total_bytes)) {
    return true;
  }
  struct sysinfo facts {};
  if (sysinfo(&facts) != 0) return false;
  usage.free_bytes = static_cast<int64_t>(facts.freeram) * facts.mem_unit;
  usage.total_bytes = static_cast<int64_t>(facts.totalram) * facts.mem_unit;
  return true;
}

int usable_cpus() {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0) return 1;
  return CPU_COUNT(&cpus);
}

}  // namespace host
