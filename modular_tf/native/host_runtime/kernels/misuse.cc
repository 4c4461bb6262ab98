#include "misuse.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "host_table.h"
#include "fork_lock.h"
#include "host_runtime.h"
#include "modular_tf/logging.h"

namespace mtf::kernels {
namespace {

thread_local MisuseRecord* innermost = nullptr;

void log_misuse(int32_t rule, const char* text, const void* caller) noexcept {
  if (mtf_min_log_level() > TF_ERROR) return;
  char* with_rule = nullptr;
  const int length = asprintf(&with_rule, "%s (KN-%03d)", text, rule);
  mtf_plugin_line line = {};
  line.level = TF_ERROR;
  line.text = length < 0 ? text : with_rule;
  line.caller = caller;
  mtf_log_line(&line);
  if (length >= 0) std::free(with_rule);
}

}  // namespace

MisuseRecord::MisuseRecord(bool is_logged) noexcept : logs(is_logged), outer_(innermost) {
  innermost = this;
}
MisuseRecord::~MisuseRecord() { innermost = outer_; }

void report_misuse_text(int32_t rule, const char* text, const void* caller) noexcept {
  if (innermost == nullptr || innermost->logs) log_misuse(rule, text, caller);
  keep_misuse_text(rule, text);
}

void keep_misuse_text(int32_t rule, const char* text) noexcept {
  if (innermost != nullptr && innermost->rule == kRuleNone) {
    innermost->rule = rule;
    std::snprintf(innermost->text, sizeof innermost->text, "%s", text);
  }
}

namespace {

constexpr int kMost = MTF_ABSENT_FUNCTIONS_MOST;
constexpr char kUnnamed[] =
    "a function that the host does not offer was called; there are more of them than it can name";

// What a function says when it is called. Written before the count that covers it, so that a fork
// finds the list whole; never freed.
std::atomic<const std::string*> reports[kMost];
std::atomic<int> count{0};
Lock adding;

// Both registers that a number, a pointer or two of them are returned in.
struct Zeros {
  void *first, *second;
};

using AbsentFunction = Zeros (*)();

// `Number` is that of its report; kMost is shared by all that have none.
template <int Number>
[[gnu::noinline]] Zeros absent_function() noexcept {
  const void* caller = __builtin_extract_return_addr(__builtin_return_address(0));
  const char* text = kUnnamed;
  if constexpr (Number < kMost) text = reports[Number].load(std::memory_order_acquire)->c_str();
  report_misuse_text(kRuleNoStub, text, caller);
  return {nullptr, nullptr};
}

template <int... Numbers>
constexpr std::array<AbsentFunction, kMost + 1> all_functions(
    std::integer_sequence<int, Numbers...>) {
  return {absent_function<Numbers>...};
}

constexpr auto kFunctions = all_functions(std::make_integer_sequence<int, kMost + 1>());

// The number of the function with this report: a known one, a new one, or kMost.
int number_of(std::string report) {
  auto made = std::make_unique<const std::string>(std::move(report));
  const LockGuard guard(adding);
  const int known = count.load(std::memory_order_relaxed);
  for (int number = 0; number < known; ++number) {
    if (*reports[number].load(std::memory_order_relaxed) == *made) return number;
  }
  if (known == kMost) return kMost;
  reports[known].store(made.release(), std::memory_order_release);
  count.store(known + 1, std::memory_order_release);
  return known;
}

int number_for(const char* name, const char* library) noexcept {
  try {
    return number_of(std::string(name) + ", which the host does not offer, was called by " +
                     library);
  } catch (...) {
    return kMost;
  }
}

}  // namespace
}  // namespace mtf::kernels

void* mtf_make_absent_function(const char* name, const char* library) {
  using namespace mtf::kernels;
  const auto number = static_cast<size_t>(number_for(name, library));
  return reinterpret_cast<void*>(kFunctions[number]);
}
