// The first failure of a construction or call.
#pragma once

#include "copied_text.h"
#include "host_table.h"
#include "misuse.h"
#include "modular_tf/status.h"

namespace mtf::kernels {

inline void set_failure(mtf_kernel_failure* failure, int32_t code, int32_t rule,
                        const char* message) noexcept {
  if (failure->code != TF_OK) return;  // the first one counts
  *failure = {code, rule, mtf_copied_text(message)};
}

// What a plugin says with `…_Failure`; OK is no failure.
inline void set_failure_of_plugin(mtf_kernel_failure* failure, const TF_Status* status,
                                  int32_t rule) noexcept {
  if (TF_GetCode(status) != TF_OK) {
    set_failure(failure, TF_GetCode(status), rule, TF_Message(status));
  }
}

inline void set_failure_of_misuse(mtf_kernel_failure* failure, const MisuseRecord& misuse) noexcept {
  if (misuse.rule != kRuleNone) set_failure(failure, TF_INTERNAL, misuse.rule, misuse.text);
}

}  // namespace mtf::kernels
