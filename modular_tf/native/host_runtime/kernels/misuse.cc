#include "misuse.h"

#include <cstdio>

#include "modular_tf/logging.h"

namespace mtf::kernels {
namespace {

thread_local MisuseRecord* innermost = nullptr;

}  // namespace

MisuseRecord::MisuseRecord() noexcept : outer_(innermost) { innermost = this; }
MisuseRecord::~MisuseRecord() { innermost = outer_; }

void report_misuse_text(int32_t rule, const char* text) noexcept {
  if (innermost == nullptr) {
    TF_Log(TF_ERROR, "%s (KN-%03d)", text, rule);
  } else if (innermost->rule == kRuleNone) {
    innermost->rule = rule;
    std::snprintf(innermost->text, sizeof innermost->text, "%s", text);
  }
}

}  // namespace mtf::kernels
