#include "call_measure.h"

#include <time.h>

#include <cerrno>

#include "fork_lock.h"

namespace mtf {
namespace {

uint64_t now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

CallMeasure::CallMeasure(const CallUnderWay& call) noexcept : call_(call) {
  if (call_.plugin == nullptr || call_.operation == kPluginMemoryFree) return;
  const unsigned wanted = measured.load(std::memory_order_relaxed);
  process_ = fork_generation();
  is_traced_ = (wanted & kMeasureTrace) != 0;
  if ((wanted & kMeasureCounts) != 0) counts_ = counts_of(call_.plugin, call_.operation);
  if (counts_ != nullptr) count_begin(*counts_);
  begin_ns_ = now_ns();
}

CallMeasure::~CallMeasure() {
  if (begin_ns_ == 0 || process_ != fork_generation()) return;  // else it goes on in the parent
  const int left_by_plugin = errno;
  const uint64_t end_ns = now_ns();
  if (counts_ != nullptr) count_end(*counts_, end_ns - begin_ns_, call_.bytes(), code_);
  if (is_traced_) trace_call(call_, begin_ns_, end_ns, code_);
  errno = left_by_plugin;
}

}  // namespace mtf
