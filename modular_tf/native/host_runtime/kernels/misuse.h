// What a plugin did against the rules while it was called: kept for whoever made the call.
#pragma once

#include <cstdint>

namespace mtf::kernels {

// Numbers of rules KN-nnn that are broken during a call.
enum Rule : int32_t {
  kRuleNone = 0,
  kRuleConstraintType = 17,
  kRuleDefinitionText = 22,
  kRuleConstructionFailed = 60,
  kRuleConstructionEnded = 63,
  kRuleOutputAllocated = 76,
  kRuleDimensions = 77,
  kRuleAllocated = 78,
  kRuleOutputType = 79,
  kRuleOutputsSet = 80,
  kRuleArguments = 83,
  kRuleTemporarySized = 84,
  kRuleStream = 85,
  kRuleComputeFailed = 87,
  kRuleInputsUnchanged = 93,
  kRuleDoneOnce = 95,
  kRuleContextEnded = 96,
  kRuleNoStub = 100,
  kRuleHandleInUse = 101,
  kRuleVariable = 102,
};

// The first misuse of a call into a plugin. Lies on the stack of the caller, who reads it when the
// plugin has returned; calls nest.
class MisuseRecord {
 public:
  // With `logs`, every misuse that no status tells is written to the log as well.
  explicit MisuseRecord(bool logs = false) noexcept;
  ~MisuseRecord();
  MisuseRecord(const MisuseRecord&) = delete;
  MisuseRecord& operator=(const MisuseRecord&) = delete;

  int32_t rule = kRuleNone;  // kRuleNone: nothing was misused
  char text[256] = "";

  const bool logs;

 private:
  MisuseRecord* const outer_;
};

// Keeps a misuse for the innermost call of this thread; writes it to the log where there is none, as
// a line of the code that `caller` is an address in.
void report_misuse_text(int32_t rule, const char* text, const void* caller = nullptr) noexcept;
// Keeps a misuse likewise; it is in no log, since a status tells the plugin.
void keep_misuse_text(int32_t rule, const char* text) noexcept;

}  // namespace mtf::kernels
