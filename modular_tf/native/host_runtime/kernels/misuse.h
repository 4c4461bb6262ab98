// What a plugin did against the rules while it was called: kept for whoever made the call.
#ifndef MODULAR_TF_HOST_RUNTIME_KERNELS_MISUSE_H_
#define MODULAR_TF_HOST_RUNTIME_KERNELS_MISUSE_H_

#include <cstdint>

namespace mtf::kernels {

// Numbers of rules KN-nnn that are broken during a call.
enum Rule : int32_t {
  kRuleNone = 0,
  kRuleConstructionFailed = 60,
  kRuleAllocated = 78,
  kRuleOutputType = 79,
  kRuleOutputsSet = 80,
  kRuleComputeFailed = 87,
  kRuleArguments = 83,
  kRuleDoneOnce = 95,
  kRuleNoStub = 100,
  kRuleHandleInUse = 101,
  kRuleVariable = 102,
};

// The first misuse of a call into a plugin. Lies on the stack of the caller, who reads it when the
// plugin has returned; calls nest.
class MisuseRecord {
 public:
  MisuseRecord() noexcept;
  ~MisuseRecord();
  MisuseRecord(const MisuseRecord&) = delete;
  MisuseRecord& operator=(const MisuseRecord&) = delete;

  int32_t rule = kRuleNone;  // kRuleNone: nothing was misused
  char text[256] = "";

 private:
  MisuseRecord* const outer_;
};

// Keeps a misuse for the innermost call of this thread; writes it to the log where there is none, as
// a line of the code that `caller` is an address in.
void report_misuse_text(int32_t rule, const char* text, const void* caller = nullptr) noexcept;

}  // namespace mtf::kernels
#endif
