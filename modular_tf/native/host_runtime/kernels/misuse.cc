#include "misuse.h"

#include <cstdio>
#include <cstdlib>

#include "log_line.h"
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

}  // namespace mtf::kernels
