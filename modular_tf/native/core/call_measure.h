// What a call into a plugin costs, for those who have asked for counts or a trace.
#pragma once

#include <atomic>
#include <cstdint>

#include "call_under_way.h"
#include "modular_tf/status.h"

namespace mtf {

struct CallCounts;

// What `measured` is the sum of.
constexpr unsigned kMeasureCounts = 1;
constexpr unsigned kMeasureTrace = 2;
inline std::atomic<unsigned> measured{0};

// The plugin's own function for giving its memory back is not measured: a list of a thousand names
// would be a thousand calls of it.
inline constexpr char kPluginMemoryFree[] = "plugin_memory_free";

// Lies beside the CallUnderWay of a call, and ends before it.
class CallMeasure {
 public:
  explicit CallMeasure(const CallUnderWay& call) noexcept;
  ~CallMeasure();
  CallMeasure(const CallMeasure&) = delete;
  CallMeasure& operator=(const CallMeasure&) = delete;

  // How the call has ended, as a TF_Code; a thread that ends within a call says nothing.
  void ended_with(int code) noexcept { code_ = code; }

 private:
  const CallUnderWay& call_;
  CallCounts* counts_ = nullptr;
  uint64_t begin_ns_ = 0;  // 0: the call is not measured
  unsigned process_ = 0;
  int code_ = TF_CANCELLED;
  bool is_traced_ = false;
};

// The counts of an operation of a plugin, which are never freed; NULL where there is no memory.
CallCounts* counts_of(const mtf_plugin* plugin, const char* operation) noexcept;
void count_begin(CallCounts& counts) noexcept;
void count_end(CallCounts& counts, uint64_t duration_ns, uint64_t bytes, int code) noexcept;

// Writes a call that has ended into the trace, if there is one.
void trace_call(const CallUnderWay& call, uint64_t begin_ns, uint64_t end_ns, int code) noexcept;

}  // namespace mtf
