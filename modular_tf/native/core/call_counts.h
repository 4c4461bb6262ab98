/* Counts of the calls into plugins: how many, how long, how many bytes, and how they ended. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One operation of a plugin; where two files have one name, there are two.
 *
 * `durations[i]` are the calls that took at most 2^i ns, and longer than 2^(i-1); the last one has
 * all that took longer. `failures[code]` are the calls that ended with this TF_Code other than OK;
 * codes that are none count as UNKNOWN. `bytes` are those that were read, appended or mapped. */
typedef struct mtf_call_counts {
  const char* plugin;
  const char* path; /* of its file */
  const char* operation;
  uint64_t under_way;
  uint64_t bytes;
  uint64_t time_ns;
  uint64_t failures[17];
  uint64_t durations[40];
} mtf_call_counts;

/* Calls are counted from the first mtf_call_counts_begin until as many mtf_call_counts_end. What was
 * counted stays; a forked child begins with nothing. [any thread] */
void mtf_call_counts_begin(void);
void mtf_call_counts_end(void);

/* Copies the counts behind `previous`, the first ones behind NULL; NULL where there are no more. A call
 * that ends meanwhile may be in some of the numbers only. [any thread] */
const void* mtf_call_counts_next(const void* previous, mtf_call_counts* counts);

#ifdef __cplusplus
}

#include <atomic>
#include <cstdint>

#include "plugin_call.h"
#include "modular_tf/status.h"

// What a call into a plugin costs, for those who have asked for counts or a trace.

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

// Writes a call that has ended into the trace, if there is one.
void trace_call(const CallUnderWay& call, uint64_t begin_ns, uint64_t end_ns, int code) noexcept;

}  // namespace mtf
#endif
